// Cuts a batch of chains into groups that walk in step, hands them to threads, and picks the arithmetic that fits the
// scores.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "dualfield/core/parallel.hpp"
#include "dualfield/structures/chains/chain_passes.hpp"
#include "dualfield/structures/structure.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

// The tables of scores shared by all edges, each made when first needed; none where scores differ from edge to edge.
class SharedTables {
  public:
    SharedTables(const ChainTopology& topology, const ChainScores& scores) : topology_(topology), scores_(scores) {}

    const TransitionTable* get(Domain domain) {
        if (scores_.transition_per_edge) return nullptr;
        Entry& entry = domain == Domain::exponential ? exponential_ : logarithm_;
        std::call_once(entry.once, [&] {
            entry.table.fill(topology_, scores_.transition, scores_.inverse_temperature, domain, true, true);
        });
        return &entry.table;
    }

  private:
    struct Entry {
        std::once_flag once;
        TransitionTable table;
    };
    const ChainTopology& topology_;
    const ChainScores& scores_;
    Entry exponential_, logarithm_;
};

inline Status status_of(const ChainLane& lane) {
    // Finite scores may overflow when they are added up.
    if (lane.bad_number || !(lane.log_partition < kInfinity)) return Status::bad_number;
    return lane.log_partition > -kInfinity ? Status::ok : Status::impossible;
}

// Calls body(workspace, lanes) for groups of up to four examples of similar length, longest first; empty examples are
// left out.
template <class Body>
void for_groups(const ChainScores& scores, std::size_t n_threads, Body body) {
    constexpr std::size_t kMost = kInStep;
    std::vector<std::size_t> order;
    order.reserve(scores.n_examples());
    for (std::size_t i = 0; i < scores.n_examples(); ++i)
        if (scores.length(i) > 0) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return scores.length(a) > scores.length(b); });
    const std::size_t n_groups = (order.size() + kMost - 1) / kMost;
    n_threads = std::max<std::size_t>(1, std::min(n_threads, n_groups));
    std::vector<ChainWorkspace> workspaces(n_threads);
    parallel_for(n_groups, n_threads, [&](std::size_t worker, std::size_t group) {
        ChainLane lanes[kInStep];
        const std::size_t first = group * kMost, count = std::min(kMost, order.size() - first);
        for (std::size_t l = 0; l < count; ++l) {
            lanes[l].example = order[first + l];
            lanes[l].length = scores.length(lanes[l].example);
        }
        body(workspaces[worker], std::span<ChainLane>(lanes, count));
    });
}

// Gives each lane the rows that a pass writes: 8 bytes x width for each row kept, two rows where none is.
inline void lay_out(const ChainContext& context, ChainWorkspace& workspace, std::span<ChainLane> lanes) {
    const std::size_t width = context.topology.width();
    std::size_t n_rows = 0, n_nodes = 0;
    const auto rows_of = [](const ChainLane& lane, bool keep) { return keep ? lane.length : 2; };
    for (const ChainLane& lane : lanes) {
        n_rows += rows_of(lane, context.keep_alpha) + rows_of(lane, context.keep_emission);
        n_nodes += lane.length;
    }
    double* rows = workspace.rows.require(checked_product(n_rows, width));
    double* taken = workspace.taken.require(n_nodes);
    for (ChainLane& lane : lanes) {
        lane.alpha = rows;
        lane.emission = rows + rows_of(lane, context.keep_alpha) * width;
        rows = lane.emission + rows_of(lane, context.keep_emission) * width;
        lane.taken = taken;
        taken += lane.length;
    }
}

// Up to this many labels four examples side by side in a vector are faster than one example along it; with clique sums,
// which walk over all rows again, fewer.
inline constexpr std::size_t kFewLabels = 40, kFewLabelsForSums = 22;

inline bool fits_interleaved(const ChainContext& context, std::span<const ChainLane> lanes) {
    return context.topology.is_plain() && context.shared && lanes.size() == kInStep &&
           context.topology.n_labels() <= (lanes[0].clique_sums ? kFewLabelsForSums : kFewLabels);
}

// Best scores of each lane: the maximum and, where the lane says so, the best labelling and the best through each
// label.
inline void run_max(const ChainContext& context, ChainWorkspace& workspace, std::span<ChainLane> lanes) {
    if (fits_interleaved(context, lanes)) return routines().interleaved_max(context, workspace, lanes);
    lay_out(context, workspace, lanes);
    routines().forward_max(context, workspace, lanes);
    if (lanes[0].nodes) routines().backward_max(context, workspace, lanes);
    if (lanes[0].labels) routines().trace_back(context, workspace, lanes);
}

// Sums over labellings: the fast arithmetic first, the safe one for examples whose scores are too far apart for it.
class SumPasses {
  public:
    SumPasses(const ChainTopology& topology, const ChainScores& scores, bool keep_alpha, bool keep_emission)
        : tables_(topology, scores),
          scaled_{topology, scores, tables_.get(Domain::exponential), keep_alpha, keep_emission} {}

    void forward(ChainWorkspace& workspace, std::span<ChainLane> lanes) {
        lay_out(scaled_, workspace, lanes);
        routines().forward_scaled(scaled_, workspace, lanes);
        for (ChainLane& lane : lanes)
            if (lane.out_of_range) routines().forward_log(logarithmic(), workspace, {&lane, 1});
    }

    void backward(ChainWorkspace& workspace, std::span<ChainLane> lanes) {
        const bool all_scaled =
            std::none_of(lanes.begin(), lanes.end(), [](const ChainLane& l) { return l.out_of_range; });
        if (all_scaled) return routines().backward_scaled(scaled_, workspace, lanes);
        for (ChainLane& lane : lanes) {
            if (lane.out_of_range)
                routines().backward_log(logarithmic(), workspace, {&lane, 1});
            else
                routines().backward_scaled(scaled_, workspace, {&lane, 1});
        }
    }

    // Log-partition of each lane and, where it says so, node marginals and clique sums. Calls use_rows(lane) for each
    // lane whose forward and backward rows were laid out, while they last; the others were done in the interleaved
    // layout.
    template <class UseRows>
    void run(ChainWorkspace& workspace, std::span<ChainLane> lanes, bool may_interleave, UseRows use_rows) {
        if (may_interleave && fits_interleaved(scaled_, lanes)) {
            routines().interleaved_scaled(scaled_, workspace, lanes);
            for (ChainLane& lane : lanes) {
                if (!lane.out_of_range) continue;
                again(workspace, lane);
                use_rows(lane);
            }
            return;
        }
        forward(workspace, lanes);
        if (lanes[0].nodes) backward(workspace, lanes);
        for (ChainLane& lane : lanes) use_rows(lane);
    }

    // The context that a lane was computed in.
    ChainContext context_of(const ChainLane& lane) { return lane.out_of_range ? logarithmic() : scaled_; }

    // The context with tables of logarithms.
    ChainContext logarithmic() {
        ChainContext context = scaled_;
        context.shared = tables_.get(Domain::logarithm);
        return context;
    }

  private:
    void again(ChainWorkspace& workspace, ChainLane& lane) {
        const ChainContext context = logarithmic();
        lay_out(context, workspace, {&lane, 1});
        routines().forward_log(context, workspace, {&lane, 1});
        if (lane.nodes) routines().backward_log(context, workspace, {&lane, 1});
    }

    SharedTables tables_;
    ChainContext scaled_;
};

}  // namespace dualfield
