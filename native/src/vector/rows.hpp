// Rows of scores over labels: from memory as the caller laid it out into padded rows, checked and bounded on the way.
#pragma once

#include <cstddef>

#include "dualfield/vector/routines.hpp"
#include "vector.hpp"

namespace dualfield {
namespace {

DF_INLINE Vec load_first(const double* p, std::size_t n, double rest) {
    return Vec{p[0], n > 1 ? p[1] : rest, n > 2 ? p[2] : rest, rest};
}

// row[0..padded(n)) += summand[0..n), or = summand with -inf in the padding.
template <bool Add>
DF_INLINE void take_row(double* row, const double* summand, std::size_t n) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(row + i, Add ? load(row + i) + load(summand + i) : load(summand + i));
    if (i == n) return;
    const Vec last = load_first(summand + i, n - i, Add ? 0.0 : -kInfinity);
    store(row + i, Add ? load(row + i) + last : last);
}

// The first `count` < kLanes numbers, spelled out: the compiler would make a call of a loop.
DF_INLINE void store_first(double* out, Vec v, std::size_t count) {
    switch (count) {
        case 3:
            out[2] = v[2];
            [[fallthrough]];
        case 2:
            out[1] = v[1];
            [[fallthrough]];
        case 1:
            out[0] = v[0];
            break;
        default:
            break;
    }
}

// row has room for whole vectors.
DF_INLINE void write_row(double* out, const double* row, std::size_t n) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(out + i, load(row + i));
    if (i < n) store_first(out + i, load(row + i), n - i);
}

// The first n of V vectors, where n reaches into the last one.
template <int V>
DF_INLINE void write_vectors(double* out, const Vec (&row)[V], std::size_t n) {
    constexpr std::size_t kBefore = kLanes * (V - 1);
    for (int v = 0; v + 1 < V; ++v) store(out + kLanes * v, row[v]);
    if (n == kBefore + kLanes)
        store(out + kBefore, row[V - 1]);
    else
        store_first(out + kBefore, row[V - 1], n - kBefore);
}

// rows[l] = source[l] * factor for L rows of n scores, -inf in the padding; highest[l] is the largest of row l.
// bad[l] collects where a score is NaN or +inf. A source may be the row itself.
template <int L>
DF_INLINE void scale_rows(const double* const* source, std::size_t n, double factor, double* const* rows,
                          double* highest, IntVec* bad) {
    Vec top[L];
    for (int l = 0; l < L; ++l) top[l] = splat(-kInfinity);
    for (std::size_t i = 0; i < n; i += kLanes) {
        for (int l = 0; l < L; ++l) {
            const Vec v =
                (i + kLanes <= n ? load(source[l] + i) : load_first(source[l] + i, n - i, -kInfinity)) * splat(factor);
            bad[l] |= ~less(v, splat(kInfinity));
            top[l] = larger(v, top[l]);
            store(rows[l] + i, v);
        }
    }
    reduce<Larger, L>(top, highest);
}

RowBounds read_row(const double* scores, const double* cost, std::size_t n, double factor, double* row) {
    const double* source = scores;
    if (cost) {
        take_row<false>(row, scores, n);
        take_row<true>(row, cost, n);
        source = row;
    }
    RowBounds bounds{};
    IntVec bad = {};
    scale_rows<1>(&source, n, factor, &row, &bounds.highest, &bad);
    bounds.bad_number = any_set(bad);
    return bounds;
}

NumberRange range(const double* x, std::size_t n, double factor) {
    Vec low = splat(kInfinity), high = splat(-kInfinity);
    IntVec bad = {}, none = {};
    for (std::size_t i = 0; i < n; i += kLanes) {
        const Vec v = (i + kLanes <= n ? load(x + i) : load_first(x + i, n - i, x[i])) * splat(factor);
        bad |= ~less(v, splat(kInfinity));
        none |= at_most(v, splat(-kInfinity));
        high = larger(v, high);
        const Vec finite = select(less(splat(-kInfinity), v), v, splat(kInfinity));
        low = smaller(finite, low);
    }
    NumberRange out{kInfinity, -kInfinity, any_set(none), any_set(bad)};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        out.lowest = low[lane] < out.lowest ? low[lane] : out.lowest;
        out.highest = high[lane] > out.highest ? high[lane] : out.highest;
    }
    return out;
}

double exponentials(const double* in, double shift, std::size_t n, double* out) {
    Vec total[1] = {splat(0.0)};
    for (std::size_t i = 0; i < n; i += kLanes) {
        const Vec v = exponential(load(in + i) - splat(shift));
        store(out + i, v);
        total[0] += v;
    }
    double sum;
    reduce<Add, 1>(total, &sum);
    return sum;
}

}  // namespace
}  // namespace dualfield
