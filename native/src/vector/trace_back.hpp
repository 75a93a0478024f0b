// From the forward rows of MaxPlus to the labelling that attains the maximum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "chain_algebra.hpp"
#include "dualfield/structures/chains/chain_passes.hpp"

namespace dualfield {
namespace {

// First index of the largest value(i), i < width, without a branch that could be guessed wrong. value gives four at a
// time.
template <class Values>
DF_INLINE std::size_t first_largest(std::size_t width, Values value) {
    Vec top = splat(-kInfinity), index = splat(0.0), here = {0.0, 1.0, 2.0, 3.0};
    for (std::size_t i = 0; i < width; i += kLanes, here += splat(4.0)) {
        const Vec v = value(i);
        index = select(less(top, v), here, index);
        top = larger(v, top);
    }
    const Vec tops[1] = {top};
    double best;
    reduce<Larger, 1>(tops, &best);
    const Vec negated[1] = {select(less(top, splat(best)), splat(-kInfinity), -index)};
    double lowest;
    reduce<Larger, 1>(negated, &lowest);
    return static_cast<std::size_t>(-lowest);
}

struct PlainValues {
    const double *alpha, *entries;
    DF_INLINE Vec operator()(std::size_t i) const { return load(alpha + i) + load(entries + i); }
};

struct GatheredValues {
    const double *alpha, *entries;
    const std::uint32_t* slots;
    std::size_t n;
    DF_INLINE Vec operator()(std::size_t i) const {
        Vec v = splat(-kInfinity);
        for (std::size_t k = 0; k < kLanes && i + k < n; ++k) v[k] = alpha[slots[i + k]] + entries[i + k];
        return v;
    }
};

// The slot that is the best predecessor of `slot`, from forward row `alpha` and the backward table `entries`.
template <bool Plain>
DF_INLINE std::uint32_t best_predecessor(const ChainTopology& topology, const double* alpha, const double* entries,
                                         std::uint32_t slot) {
    if constexpr (Plain) {
        const std::size_t width = topology.width();
        return static_cast<std::uint32_t>(first_largest(width, PlainValues{alpha, entries + slot * width}));
    } else {
        const auto& group = topology.groups()[static_cast<std::size_t>(topology.states()[slot].group_out)];
        const std::uint32_t* slots = topology.in_slots().data() + group.first_in;
        const double* row = entries + group.backward_block + std::size_t{slot - group.first_out} * group.in_width;
        return slots[first_largest(group.in_width, GatheredValues{alpha, row, slots, group.n_in})];
    }
}

DF_INLINE bool has_answer(const ChainLane& lane) {
    return !lane.bad_number && lane.log_partition > -kInfinity;
}

// The forward rows hold maxima only; the predecessor that attains one is looked up along the path. Lanes walk side by
// side, so that one waits for its row while the others compute.
template <bool Plain>
DF_INLINE void trace_lanes(const ChainContext& context, std::span<ChainLane> lanes, const double* entries,
                           std::uint32_t* slots, std::size_t from, std::size_t to) {
    const ChainTopology& topology = context.topology;
    for (std::size_t t = from; t >= to && t > 0; --t) {
        for (std::size_t l = 0; l < lanes.size(); ++l) {
            const ChainLane& lane = lanes[l];
            if (t >= lane.length || !has_answer(lane)) continue;
            slots[l] = best_predecessor<Plain>(topology, lane.alpha + (t - 1) * topology.width(), entries, slots[l]);
            lane.labels[t - 1] = topology.states()[slots[l]].label;
        }
    }
}

void trace_back(const ChainContext& context, ChainWorkspace& workspace, std::span<ChainLane> lanes) {
    const ChainTopology& topology = context.topology;
    std::uint32_t slots[kInStep];
    std::size_t longest = 1;
    for (std::size_t l = 0; l < lanes.size(); ++l) {
        const ChainLane& lane = lanes[l];
        if (!has_answer(lane)) continue;
        const double* row = lane.alpha + (lane.length - 1) * topology.width();
        slots[l] = topology.by_last_label()[0];
        for (const std::uint32_t slot : topology.by_last_label())
            if (row[slot] > row[slots[l]]) slots[l] = slot;
        lane.labels[lane.length - 1] = topology.states()[slots[l]].label;
        longest = std::max(longest, lane.length);
    }
    if (context.shared) {
        const double* entries = context.shared->backward.data();
        if (topology.is_plain()) return trace_lanes<true>(context, lanes, entries, slots, longest - 1, 1);
        return trace_lanes<false>(context, lanes, entries, slots, longest - 1, 1);
    }
    for (std::size_t l = 0; l < lanes.size(); ++l) {
        for (std::size_t t = lanes[l].length - 1; t > 0; --t) {
            const TransitionTable& table =
                context.table_at(workspace, lanes[l].example, t, Domain::logarithm, ChainContext::Direction::backward);
            trace_lanes<false>(context, lanes.subspan(l, 1), table.backward.data(), slots + l, t, t);
        }
    }
}

}  // namespace
}  // namespace dualfield
