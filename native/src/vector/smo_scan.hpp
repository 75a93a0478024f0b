// The inner loops of sequential minimal optimisation, one vector holding neighbouring points.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dualfield/vector/smo_rows.hpp"
#include "softmax_columns.hpp"
#include "wide.hpp"

namespace dualfield {
namespace {

template <class T>
inline constexpr T kUnreached = static_cast<T>(sizeof(T) == 4 ? 3e38 : 1e308);

inline constexpr std::size_t kScanBlock = 8;  // vectors

template <class T>
struct LanesOf;
template <>
struct LanesOf<double> {
    using type = IntVec;
};
template <>
struct LanesOf<float> {
    using type = IntVec32;
};

// Updates n_vectors from column j on; their highest and lowest pulls, lane by lane.
template <class T, int Rows, bool Held>
DF_INLINE void scan_vectors(const SmoScan<T>& in, std::size_t j, std::size_t n_vectors, Wide<T>& high, Wide<T>& low) {
    const Wide<T> step = wide(in.step);
    high = wide(-kUnreached<T>);
    low = wide(kUnreached<T>);
    for (std::size_t v = 0; v < n_vectors; ++v, j += kWide<T>) {
        Wide<T> h = load(in.pull + j);
        if constexpr (Rows == 1) h -= step * load(in.row_up + j);
        if constexpr (Rows == 2) h += step * (load(in.row_low + j) - load(in.row_up + j));
        if constexpr (Rows > 0) store(in.pull + j, h);
        if constexpr (Held) {
            const Wide<T> side = load(in.held + j);
            high = larger(select(less(Wide<T>{}, side), wide(-kUnreached<T>), h), high);
            low = smaller(select(less(side, Wide<T>{}), wide(kUnreached<T>), h), low);
        } else {
            high = larger(h, high);
            low = smaller(h, low);
        }
    }
}

// The first column where a lane reached its extreme, and the extreme over all lanes.
template <class T, class Blocks, class Better>
DF_INLINE void find_extreme(const T* pull, const T* held, T blocked, Wide<T> best, Blocks blocks, std::size_t first,
                            std::size_t last, Better better, T& extreme, std::int32_t& index) {
    for (std::size_t lane = 0; lane < kWide<T>; ++lane)
        if (better(best[lane], extreme)) extreme = best[lane];
    std::size_t found = last;
    for (std::size_t lane = 0; lane < kWide<T>; ++lane) {
        if (best[lane] != extreme || blocks[lane] < 0) continue;
        std::size_t j = first + static_cast<std::size_t>(blocks[lane]) * kScanBlock * kWide<T> + lane;
        for (; j < found && !(pull[j] == extreme && !(held && held[j] * blocked > T(0)));) j += kWide<T>;
        if (j < found) found = j;
    }
    if (found < last) index = static_cast<std::int32_t>(found);
}

// Each lane remembers the block where its extreme was: keeping indices along with the values would cost half of the
// loop again.
template <class T, int Rows, bool Held>
DF_CASE void scan_blocks(const SmoScan<T>& in, std::size_t first, std::size_t last, SmoExtremes<T>& out) {
    using Blocks = typename LanesOf<T>::type;
    const std::size_t n_vectors = (last - first) / kWide<T>, n_blocks = (n_vectors + kScanBlock - 1) / kScanBlock;
    Wide<T> highest = wide(-kUnreached<T>), lowest = wide(kUnreached<T>);
    Blocks up = Blocks{} - 1, low = Blocks{} - 1, block = {};
    for (std::size_t b = 0; b < n_blocks; ++b, block += 1) {
        Wide<T> top, bottom;
        const std::size_t start = first + b * kScanBlock * kWide<T>;
        if (b * kScanBlock + kScanBlock <= n_vectors)
            scan_vectors<T, Rows, Held>(in, start, kScanBlock, top, bottom);
        else
            scan_vectors<T, Rows, Held>(in, start, n_vectors - b * kScanBlock, top, bottom);
        const auto is_higher = less(highest, top), is_lower = less(bottom, lowest);
        highest = select(is_higher, top, highest);
        lowest = select(is_lower, bottom, lowest);
        up = select(is_higher, block, up);
        low = select(is_lower, block, low);
    }
    SmoExtremes<T> found{.highest = -kUnreached<T>, .lowest = kUnreached<T>};
    const T* held = Held ? in.held : nullptr;
    const std::size_t whole = first + n_vectors * kWide<T>;
    find_extreme<T>(
        in.pull, held, T(1), highest, up, first, whole, [](T a, T b) { return a > b; }, found.highest, found.up);
    find_extreme<T>(
        in.pull, held, T(-1), lowest, low, first, whole, [](T a, T b) { return a < b; }, found.lowest, found.low);
    for (std::size_t j = whole; j < last; ++j) {
        T h = in.pull[j];
        if constexpr (Rows == 1) h -= in.step * in.row_up[j];
        if constexpr (Rows == 2) h += in.step * (in.row_low[j] - in.row_up[j]);
        if constexpr (Rows > 0) in.pull[j] = h;
        if (h > found.highest && !(Held && in.held[j] > T(0)))
            found.highest = h, found.up = static_cast<std::int32_t>(j);
        if (h < found.lowest && !(Held && in.held[j] < T(0)))
            found.lowest = h, found.low = static_cast<std::int32_t>(j);
    }
    out = found;
}

template <class T>
void smo_scan(const SmoScan<T>& task, std::size_t first, std::size_t last, SmoExtremes<T>& out) {
    const SmoScan<T> in = task;  // a copy: the stores below may not change it
    if (in.held) {
        if (in.row_low) return scan_blocks<T, 2, true>(in, first, last, out);
        if (in.row_up) return scan_blocks<T, 1, true>(in, first, last, out);
        return scan_blocks<T, 0, true>(in, first, last, out);
    }
    if (in.row_low) return scan_blocks<T, 2, false>(in, first, last, out);
    if (in.row_up) return scan_blocks<T, 1, false>(in, first, last, out);
    return scan_blocks<T, 0, false>(in, first, last, out);
}

// The best of the lanes, the first of several.
template <class T, class Lanes>
DF_INLINE void best_lane(Wide<T> gain, Lanes at, T& best, std::int32_t& index) {
    for (std::size_t lane = 0; lane < kWide<T>; ++lane) {
        const auto here = static_cast<std::int32_t>(at[lane]);
        if (here < 0 || gain[lane] < best || (gain[lane] == best && index >= 0 && index < here)) continue;
        best = gain[lane];
        index = here;
    }
}

template <class T>
void smo_partners(const SmoPartners<T>& in, std::size_t first, std::size_t last, SmoChoice<T>& out) {
    using Lanes = typename LanesOf<T>::type;
    Wide<T> best_low = {}, best_up = {};
    Lanes at_low = {}, at_up = {}, at = {};
    for (std::size_t lane = 0; lane < kWide<T>; ++lane) {
        at[lane] = static_cast<std::int32_t>(first + lane);
        at_low[lane] = at_up[lane] = -1;
    }
    const Wide<T> tiny = wide(T(1e-30));
    for (std::size_t j = first; j < last; j += kWide<T>, at += static_cast<std::int32_t>(kWide<T>)) {
        const std::size_t n = last - j;
        const Wide<T> h = load_columns(in.pull + j, n, T(0)), bend = load_columns(in.bend + j, n, T(1));
        const Wide<T> below = larger(wide(in.highest) - h, Wide<T>{}), above = larger(h - wide(in.lowest), Wide<T>{});
        const Wide<T> along_low = (wide(in.bend_up) + bend) - wide(T(2)) * load_columns(in.row_up + j, n, T(0));
        const Wide<T> along_up = (wide(in.bend_low) + bend) - wide(T(2)) * load_columns(in.row_low + j, n, T(0));
        Wide<T> low = below * below / larger(along_low, tiny), up = above * above / larger(along_up, tiny);
        if (in.held) {
            const Wide<T> side = load_columns(in.held + j, n, T(0));
            low = select(less(side, Wide<T>{}), Wide<T>{}, low);
            up = select(less(Wide<T>{}, side), Wide<T>{}, up);
        }
        for (std::size_t lane = n; lane < kWide<T>; ++lane) low[lane] = up[lane] = T(0);
        const auto better_low = less(best_low, low), better_up = less(best_up, up);
        best_low = select(better_low, low, best_low);
        at_low = select(better_low, at, at_low);
        best_up = select(better_up, up, best_up);
        at_up = select(better_up, at, at_up);
    }
    out = {};
    best_lane<T>(best_low, at_low, out.gain_of_low, out.low);
    best_lane<T>(best_up, at_up, out.gain_of_up, out.up);
}

// KL(p || sigmoid(logit p + d)) with d = pull + bias, as in dual_terms: log(1 + p phi(d q) + q phi(-d p)).
template <class T>
void smo_gap(const SmoGap<T>& in, std::size_t first, std::size_t last, SmoGapSums& sums) {
    constexpr T kFar = sizeof(T) == 4 ? T(80) : T(700);
    Vec gap = {}, slope = {}, curvature = {};
    for (std::size_t j = first; j < last; j += kWide<T>) {
        const std::size_t n = last - j;
        const Wide<T> p = load_columns(in.p + j, n, T(0)), q = load_columns(in.q + j, n, T(1));
        const Wide<T> weight = load_columns(in.weights + j, n, T(0));
        const Wide<T> d = smaller(larger(load_columns(in.pull + j, n, T(0)) + wide(in.bias), wide(-kFar)), wide(kFar));
        const Wide<T> rho_p = d * q, rho_q = -(d * p);
        const Wide<T> phi_p = exponential_remainder<T>(rho_p), phi_q = exponential_remainder<T>(rho_q);
        const Wide<T> rest = p * phi_p + q * phi_q, inverse = wide(T(1)) / (wide(T(1)) + rest);
        gap += as_doubles(weight * log_one_plus<T>(rest));
        slope += as_doubles(weight * p * inverse * (phi_p + rho_p - rest));
        const Wide<T> next_p = p * inverse * (phi_p + rho_p + wide(T(1)));
        curvature += as_doubles(weight * next_p * (q * inverse * (phi_q + rho_q + wide(T(1)))));
    }
    sums.gap += sum_of(gap);
    sums.slope += sum_of(slope);
    sums.curvature += sum_of(curvature);
}

}  // namespace
}  // namespace dualfield
