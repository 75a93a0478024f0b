// Factors of examples side by side: from their scores to rows of lanes, and from there to where marginals go.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "dualfield/structures/graphs/junction.hpp"
#include "interleaved.hpp"
#include "lanes.hpp"
#include "rows.hpp"

namespace dualfield {
namespace {

// What was read of a factor, in each lane.
template <class V>
struct FactorBounds {
    V highest, lowest, strange;  // the lowest may be forbidden; strange: 1 where a number is NaN or +inf

    // Written out: what the compiler writes itself is not for the instruction set.
    DF_INLINE FactorBounds()
        : highest(Lane<V>::of(-kInfinity)), lowest(Lane<V>::of(kInfinity)), strange(Lane<V>::of(0.0)) {}
    DF_INLINE void see(V x) {
        using L = Lane<V>;
        highest = L::larger_of(x, highest);
        lowest = L::smaller_of(x, lowest);
        strange = L::where_less(x, L::of(kInfinity), strange, L::of(1.0));
    }
    // Once all is seen: what is forbidden does not count as lowest.
    DF_INLINE void pass_over_forbidden(const double* x, std::size_t cells) {
        using L = Lane<V>;
        if (!L::any_at_most(lowest, -kInfinity)) return;
        lowest = L::of(kInfinity);
        for (std::size_t c = 0; c < cells; ++c) {
            const V v = L::at(x + L::kCount * c);
            lowest = L::smaller_of(L::where_less(L::of(-kInfinity), v, v, L::of(kInfinity)), lowest);
        }
        lowest = L::smaller_of(lowest, highest);
        highest = L::where_less(L::of(-kInfinity), highest, highest, L::of(0.0));
        lowest = L::where_less(L::of(-kInfinity), lowest, lowest, L::of(0.0));
    }
    // 1 where a score is so large that sums may overflow.
    DF_INLINE V huge() const {
        using L = Lane<V>;
        const V most = L::of(JunctionTask::kHuge), one = L::of(1.0), none = L::of(0.0);
        return L::larger_of(L::where_less(most, highest, one, none), L::where_less(lowest, none - most, one, none));
    }
};

// columns[k] = numbers p[l][k] of four lanes, the first `left` of them.
DF_INLINE void read_columns(const double* const* p, std::size_t c, std::size_t left, Vec (&columns)[kLanes]) {
    if (left >= kLanes) {
        const Vec rows[kLanes] = {load(p[0] + c), load(p[1] + c), load(p[2] + c), load(p[3] + c)};
        transpose(rows, columns);
        return;
    }
    std::size_t k = 0;
    if (left >= 2) {
        using Half = double __attribute__((vector_size(16)));
        Half pairs[kLanes];
        for (std::size_t l = 0; l < kLanes; ++l) std::memcpy(&pairs[l], p[l] + c, sizeof(Half));
        const Vec ab = __builtin_shufflevector(pairs[0], pairs[1], 0, 1, 2, 3);
        const Vec cd = __builtin_shufflevector(pairs[2], pairs[3], 0, 1, 2, 3);
        columns[0] = __builtin_shufflevector(ab, cd, 0, 2, 4, 6);
        columns[1] = __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
        k = 2;
    }
    if (k < left) columns[k] = Vec{p[0][c + k], p[1][c + k], p[2][c + k], p[3][c + k]};
}

// x [cells][lanes] = own + shared.
template <class V>
DF_INLINE FactorBounds<V> read_factor(const FactorScores& factor, std::size_t cells, double* x) {
    FactorBounds<V> bounds;
    if constexpr (std::is_same_v<V, double>) {
        const double *own = factor.own[0], *shared = factor.shared[0];
        for (std::size_t c = 0; c < cells; ++c) {
            x[c] = own && shared ? own[c] + shared[c] : own ? own[c] : shared ? shared[c] : 0.0;
            bounds.see(x[c]);
        }
    } else {
        for (std::size_t c = 0; c < cells; c += kLanes) {
            const std::size_t left = cells - c;
            Vec one[kLanes] = {}, two[kLanes] = {}, more[kLanes];
            if (factor.own[0]) {
                read_columns(factor.own, c, left, one);
                read_columns(factor.own + kLanes, c, left, two);
            }
            if (factor.shared[0]) {
                read_columns(factor.shared, c, left, more);
                for (std::size_t k = 0; k < kLanes && k < left; ++k)
                    one[k] = factor.own[0] ? one[k] + more[k] : more[k];
                read_columns(factor.shared + kLanes, c, left, more);
                for (std::size_t k = 0; k < kLanes && k < left; ++k)
                    two[k] = factor.own[0] ? two[k] + more[k] : more[k];
            }
            for (std::size_t k = 0; k < kLanes && k < left; ++k) {
                const Twin both{one[k], two[k]};
                bounds.see(both);
                Lane<Twin>::put(x + kSideBySide * (c + k), both);
            }
        }
    }
    bounds.pass_over_forbidden(x, cells);
    return bounds;
}

// x = (x - highest) / T.
template <class V>
DF_INLINE void shift_factor(V highest, double inverse, std::size_t cells, double* x) {
    using L = Lane<V>;
    for (std::size_t j = 0; j < cells; ++j)
        L::put(x + L::kCount * j, (L::at(x + L::kCount * j) - highest) * L::of(inverse));
}

// An exponential that would be denormal is 0 (see exponential), and so is that of what is forbidden.
DF_CASE void exponentiate(double* x, std::size_t n) {
    const std::size_t whole = n / kLanes * kLanes;
    for (std::size_t j = 0; j < whole; j += kLanes) store(x + j, exponential(load(x + j)));
    if (whole < n) store_first(x + whole, exponential(load_first(x + whole, n - whole, 0.0)), n - whole);
}

void share_exponentials(const double* scores, std::size_t cells, double inverse, double* out,
                        SharedExponentials& shared) {
    FactorScores factor;
    factor.own[0] = scores;
    const FactorBounds<double> bounds = read_factor<double>(factor, cells, out);
    shift_factor<double>(bounds.highest, inverse, cells, out);
    exponentiate(out, cells);
    shared.values = out;
    shared.bad_number = bounds.strange != 0.0;
    shared.is_huge = bounds.huge() != 0.0;
    shared.lowest = (bounds.lowest - bounds.highest) * inverse;
    shared.highest = bounds.highest;
}

// A probability that would be denormal is 0: such numbers are slow and no more exact.
DF_INLINE Vec flushed(Vec v) {
    return select(less(v, splat(1e-300)), splat(0.0), v);
}

template <std::size_t First>
DF_INLINE void write_lanes(const FactorSums& sums, const double* x, std::size_t c, std::size_t left) {
    Vec columns[kLanes], rows[kLanes];
    for (std::size_t k = 0; k < kLanes; ++k)
        columns[k] = k < left ? flushed(load(x + kSideBySide * (c + k) + First)) : Vec{};
    transpose(columns, rows);
    for (std::size_t l = 0; l < kLanes; ++l) {
        if (double* to = sums.own[First + l]) {
            if (left >= kLanes)
                store(to + c, rows[l]);
            else if (left == 2)
                std::memcpy(to + c, &rows[l], 2 * sizeof(double));
            else
                store_first(to + c, rows[l], left);
        }
        if (double* to = sums.shared[First + l]) {
            if (left >= kLanes)
                store(to + c, load(to + c) + rows[l]);
            else
                for (std::size_t k = 0; k < left; ++k) to[c + k] += rows[l][k];
        }
    }
}

// Marginals [cells][lanes] to where they go.
template <class V>
DF_INLINE void write_sums(const FactorSums& sums, const double* x, std::size_t cells) {
    if constexpr (std::is_same_v<V, double>) {
        const auto value = [&](std::size_t c) DF_INLINE_LAMBDA { return x[c] < 1e-300 ? 0.0 : x[c]; };
        for (std::size_t c = 0; sums.own[0] && c < cells; ++c) sums.own[0][c] = value(c);
        for (std::size_t c = 0; sums.shared[0] && c < cells; ++c) sums.shared[0][c] += value(c);
    } else {
        for (std::size_t c = 0; c < cells; c += kLanes) {
            write_lanes<0>(sums, x, c, cells - c);
            write_lanes<kLanes>(sums, x, c, cells - c);
        }
    }
}

DF_INLINE bool is_wanted(const FactorSums& sums) {
    bool any = false;
    for (std::size_t l = 0; l < kSideBySide; ++l) any |= sums.own[l] || sums.shared[l];
    return any;
}

}  // namespace
}  // namespace dualfield
