// Scores of rows of features, and what rows add to the weights.
//
// For up to eight vectors of outputs the sums of a row stay in registers; for more they live in a scratch row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dualfield/scores/linear_map.hpp"
#include "moves.hpp"
#include "rows.hpp"

namespace dualfield {
namespace {

constexpr int kMostInRegisters = 8;

struct LaneMask {
    std::int64_t lanes[4];
};
// All bits of a lane where the number has a bit.
constexpr LaneMask kLaneMasks[16] = {{{0, 0, 0, 0}},   {{-1, 0, 0, 0}},   {{0, -1, 0, 0}},   {{-1, -1, 0, 0}},
                                     {{0, 0, -1, 0}},  {{-1, 0, -1, 0}},  {{0, -1, -1, 0}},  {{-1, -1, -1, 0}},
                                     {{0, 0, 0, -1}},  {{-1, 0, 0, -1}},  {{0, -1, 0, -1}},  {{-1, -1, 0, -1}},
                                     {{0, 0, -1, -1}}, {{-1, 0, -1, -1}}, {{0, -1, -1, -1}}, {{-1, -1, -1, -1}}};

DF_INLINE Vec masked(Vec v, std::uint8_t bits) {
    IntVec mask;
    std::memcpy(&mask, &kLaneMasks[bits], sizeof mask);
    return from_bits(bits_of(v) & mask);
}

// Calls use(place, value) for the entries of a row.
template <class Use>
DF_INLINE void for_entries(const LinearMap& map, const FeatureRows& rows, std::size_t row, Use use) {
    const LinearMap::Place* places = map.places();
    if (rows.dense) {
        const double* values = rows.dense + row * rows.n_columns;
        for (std::size_t c = 0; c < rows.n_columns; ++c) use(places[c], values[c]);
        return;
    }
    const std::int64_t first = rows.indptr[row], last = rows.indptr[row + 1];
    if (rows.values) {
        for (std::int64_t q = first; q < last; ++q) use(places[rows.indices[q]], rows.values[q]);
    } else {
        for (std::int64_t q = first; q < last; ++q) use(places[rows.indices[q]], 1.0);
    }
}

template <int V>
DF_INLINE void score_row(const LinearMap& map, const FeatureRows& rows, const double* weights, std::size_t row,
                         double* scratch) {
    const std::size_t width = map.width();
    const double* listed = weights + map.listed_begin();
    const std::int32_t* outputs = map.listed_outputs();
    Vec sums[V > 0 ? V : 1] = {};
    std::fill_n(scratch, width, 0.0);
    for_entries(map, rows, row, [&](LinearMap::Place place, double value) DF_INLINE_LAMBDA {
        if (place.count == LinearMap::kWhole) {
            const double* own = weights + place.start * width;
            if constexpr (V > 0) {
                for (int v = 0; v < V; ++v) sums[v] += splat(value) * load(own + kLanes * v);
            } else {
                for (std::size_t k = 0; k < width; k += kLanes)
                    store(scratch + k, load(scratch + k) + splat(value) * load(own + k));
            }
        } else {
            for (std::uint32_t i = 0; i < place.count; ++i)
                scratch[outputs[place.start + i]] += value * listed[place.start + i];
        }
    });
    if constexpr (V > 0)
        for (int v = 0; v < V; ++v) store(scratch + kLanes * v, sums[v] + load(scratch + kLanes * v));
}

template <int V>
DF_CASE void score_rows_of(const LinearMap& map, const FeatureRows& rows, const double* weights, std::size_t first,
                           std::size_t last, double* out, double* scratch) {
    const std::size_t n = map.n_outputs();
    for (std::size_t row = first; row < last; ++row, out += n) {
        score_row<V>(map, rows, weights, row, scratch);
        write_row(out, scratch, n);
    }
}

// What a row adds, in `step` [width] with zeros in the padding; returns how much the penalty of the moves grows.
template <int V, class Move>
DF_INLINE double add_row(const LinearMap& map, const FeatureRows& rows, const double* step, std::size_t row,
                         double* weights, const Move& move) {
    const std::size_t width = map.width(), vectors = width / kLanes;
    double* listed = weights + map.listed_begin();
    const std::int32_t* outputs = map.listed_outputs();
    const std::uint8_t* masks = map.masks();
    Vec steps[V > 0 ? V : 1];
    if constexpr (V > 0)
        for (int v = 0; v < V; ++v) steps[v] = load(step + kLanes * v);
    Vec total = {};
    double listed_total = 0.0;
    for_entries(map, rows, row, [&](LinearMap::Place place, double value) DF_INLINE_LAMBDA {
        if (place.count == LinearMap::kWhole) {
            double* own = weights + place.start * width;
            const std::uint8_t* mask = masks + place.start * vectors;
            const auto add = [&](std::size_t v, Vec moved) DF_INLINE_LAMBDA {
                total += move(own + kLanes * v, masked(splat(value) * moved, mask[v]));
            };
            if constexpr (V > 0) {
                for (int v = 0; v < V; ++v) add(static_cast<std::size_t>(v), steps[v]);
            } else {
                for (std::size_t v = 0; v < vectors; ++v) add(v, load(step + kLanes * v));
            }
        } else {
            for (std::uint32_t i = 0; i < place.count; ++i)
                listed_total += move(listed + place.start + i, value * step[outputs[place.start + i]]);
        }
    });
    double sum;
    const Vec totals[1] = {total};
    reduce<Add, 1>(totals, &sum);
    return sum + listed_total;
}

DF_INLINE void scale_step(const double* d, double scale, std::size_t n, std::size_t width, double* out) {
    std::size_t k = 0;
    for (; k + kLanes <= n; k += kLanes) store(out + k, splat(scale) * load(d + k));
    if (k < width) store(out + k, splat(scale) * load_first(d + k, n - k, 0.0));
}

template <int V, class Move>
DF_CASE double add_rows_of(const LinearMap& map, const FeatureRows& rows, const double* d, double scale,
                           std::size_t first, std::size_t last, double* weights, double* scratch, const Move& move) {
    const std::size_t n = map.n_outputs();
    double total = 0.0;
    for (std::size_t row = first; row < last; ++row, d += n) {
        scale_step(d, scale, n, map.width(), scratch);
        total += add_row<V>(map, rows, scratch, row, weights, move);
    }
    return total;
}

// The same for a row that was looked up before.
template <int V, bool Weighted>
DF_INLINE void score_planned(const LinearMap& map, const FeaturePlan::Row& row, const double* weights,
                             double* scratch) {
    const std::size_t width = map.width();
    const double* listed = weights + map.listed_begin();
    // Neighbours often score the same output: two rows of sums, so that one addition need not wait for the other.
    double* second = scratch + width;
    for (std::size_t k = 0; k < 2 * width; k += kLanes) store(scratch + k, splat(0.0));
    Vec sums[V > 0 ? V : 1];
    for (Vec& sum : sums) sum = splat(0.0);
    for (std::size_t i = 0; i < row.whole.size(); ++i) {
        const double* own = weights + row.whole[i] * width;
        const Vec value = splat(Weighted ? row.whole_values[i] : 1.0);
        if constexpr (V > 0) {
            for (int v = 0; v < V; ++v) sums[v] += Weighted ? value * load(own + kLanes * v) : load(own + kLanes * v);
        } else {
            for (std::size_t k = 0; k < width; k += kLanes)
                store(scratch + k, load(scratch + k) + value * load(own + k));
        }
    }
    const auto add = [&](std::size_t i, double* sum) DF_INLINE_LAMBDA {
        sum[row.outputs[i]] += Weighted ? row.listed_values[i] * listed[row.listed[i]] : listed[row.listed[i]];
    };
    std::size_t i = 0;
    for (; i + 2 <= row.listed.size(); i += 2) {
        add(i, scratch);
        add(i + 1, second);
    }
    if (i < row.listed.size()) add(i, scratch);
    if constexpr (V > 0) {
        for (int v = 0; v < V; ++v)
            store(scratch + kLanes * v, sums[v] + (load(scratch + kLanes * v) + load(second + kLanes * v)));
    } else {
        for (std::size_t k = 0; k < width; k += kLanes) store(scratch + k, load(scratch + k) + load(second + k));
    }
}

template <int V, bool Weighted, class Move>
DF_INLINE double add_planned(const LinearMap& map, const FeaturePlan::Row& row, const double* step, double* weights,
                             const Move& move) {
    const std::size_t width = map.width(), vectors = width / kLanes;
    double* listed = weights + map.listed_begin();
    const std::uint8_t* masks = map.masks();
    Vec steps[V > 0 ? V : 1];
    if constexpr (V > 0)
        for (int v = 0; v < V; ++v) steps[v] = load(step + kLanes * v);
    Vec total[2] = {};
    double listed_total = 0.0;
    for (std::size_t i = 0; i < row.whole.size(); ++i) {
        double* own = weights + row.whole[i] * width;
        const std::uint8_t* mask = masks + row.whole[i] * vectors;
        const auto add = [&](std::size_t v, Vec moved) DF_INLINE_LAMBDA {
            if (Weighted) moved *= splat(row.whole_values[i]);
            total[v % 2] += move(own + kLanes * v, masked(moved, mask[v]));
        };
        if constexpr (V > 0) {
            for (int v = 0; v < V; ++v) add(static_cast<std::size_t>(v), steps[v]);
        } else {
            for (std::size_t v = 0; v < vectors; ++v) add(v, load(step + kLanes * v));
        }
    }
    for (std::size_t i = 0; i < row.listed.size(); ++i) {
        const double moved = step[row.outputs[i]];
        listed_total += move(listed + row.listed[i], Weighted ? row.listed_values[i] * moved : moved);
    }
    double sum;
    const Vec totals[1] = {total[0] + total[1]};
    reduce<Add, 1>(totals, &sum);
    return sum + listed_total;
}

// Asks for the weights of a row a few rows ahead: they lie anywhere, and waiting for them one by one costs more than
// all arithmetic.
constexpr std::size_t kAhead = 2;

template <int V>
DF_INLINE void prefetch_row(const LinearMap& map, const FeaturePlan& plan, std::size_t row, std::size_t last,
                            const double* weights) {
    if (row >= last) return;
    const FeaturePlan::Row ahead = plan.row(row);
    const std::size_t width = map.width();
    for (const std::uint32_t at : ahead.whole) {
        const double* own = weights + at * width;
        for (int v = 0; v < V; v += 2) __builtin_prefetch(own + kLanes * v);
    }
    const double* listed = weights + map.listed_begin();
    for (const std::uint32_t at : ahead.listed) __builtin_prefetch(listed + at);
}

template <int V, bool Weighted>
DF_CASE void score_plan_of(const LinearMap& map, const FeaturePlan& plan, const double* weights, std::size_t first,
                           std::size_t last, double* out, double* scratch) {
    const std::size_t n = map.n_outputs();
    for (std::size_t row = first; row < last; ++row, out += n) {
        prefetch_row<V>(map, plan, row + kAhead, last, weights);
        score_planned<V, Weighted>(map, plan.row(row), weights, scratch);
        write_row(out, scratch, n);
    }
}

template <int V, bool Weighted, class Move>
DF_CASE double add_plan_of(const LinearMap& map, const FeaturePlan& plan, const double* d, double scale,
                           std::size_t first, std::size_t last, double* weights, double* scratch, const Move& move) {
    const std::size_t n = map.n_outputs();
    double total = 0.0;
    for (std::size_t row = first; row < last; ++row, d += n) {
        prefetch_row<V>(map, plan, row + kAhead, last, weights);
        if constexpr (Move::kDual) prefetch_row<V>(map, plan, row + kAhead, last, move.dual(weights));
        scale_step(d, scale, n, map.width(), scratch);
        total += add_planned<V, Weighted>(map, plan.row(row), scratch, weights, move);
    }
    return total;
}

// Calls run.operator()<V>() with the number of vectors of a row, or 0 if they do not fit in registers.
template <class Run>
DF_INLINE auto with_vectors(std::size_t vectors, Run run) {
    switch (vectors) {
        case 1:
            return run.template operator()<1>();
        case 2:
            return run.template operator()<2>();
        case 3:
            return run.template operator()<3>();
        case 4:
            return run.template operator()<4>();
        case 5:
            return run.template operator()<5>();
        case 6:
            return run.template operator()<6>();
        case 7:
            return run.template operator()<7>();
        case kMostInRegisters:
            return run.template operator()<kMostInRegisters>();
        default:
            return run.template operator()<0>();
    }
}

void score_rows(const LinearMap& map, const FeatureRows& rows, const double* weights, std::size_t first,
                std::size_t last, double* out, double* scratch) {
    with_vectors(map.width() / kLanes,
                 [&]<int V>() { score_rows_of<V>(map, rows, weights, first, last, out, scratch); });
}

double add_rows(const LinearMap& map, const FeatureRows& rows, const double* d, double scale, std::size_t first,
                std::size_t last, double* weights, double* scratch, const Shrinkage* shrinkage) {
    return with_moves(shrinkage, [&](const auto& move) {
        return with_vectors(map.width() / kLanes, [&]<int V>() {
            return add_rows_of<V>(map, rows, d, scale, first, last, weights, scratch, move);
        });
    });
}

void score_plan(const LinearMap& map, const FeaturePlan& plan, const double* weights, std::size_t first,
                std::size_t last, double* out, double* scratch) {
    with_vectors(map.width() / kLanes, [&]<int V>() {
        if (plan.is_weighted())
            score_plan_of<V, true>(map, plan, weights, first, last, out, scratch);
        else
            score_plan_of<V, false>(map, plan, weights, first, last, out, scratch);
    });
}

double add_plan(const LinearMap& map, const FeaturePlan& plan, const double* d, double scale, std::size_t first,
                std::size_t last, double* weights, double* scratch, const Shrinkage* shrinkage) {
    return with_moves(shrinkage, [&](const auto& move) {
        return with_vectors(map.width() / kLanes, [&]<int V>() {
            return plan.is_weighted() ? add_plan_of<V, true>(map, plan, d, scale, first, last, weights, scratch, move)
                                      : add_plan_of<V, false>(map, plan, d, scale, first, last, weights, scratch, move);
        });
    });
}

}  // namespace
}  // namespace dualfield
