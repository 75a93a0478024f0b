// Cuts a batch of chains into groups that walk in step, hands them to threads, and picks the arithmetic that fits the
// scores.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "dualfield/chain.hpp"
#include "dualfield/chain_passes.hpp"
#include "dualfield/parallel.hpp"
#include "dualfield/routines.hpp"

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
    if (lane.bad_number) return Status::bad_number;
    return lane.log_partition > -kInfinity ? Status::ok : Status::impossible;
}

// Calls body(workspace, lanes) for groups of up to four examples of similar length, longest first; empty examples are
// left out. Memory of a thread: 8 bytes x width x (rows kept) for the four longest examples.
template <class Body>
void for_groups(const ChainTopology& topology, const ChainScores& scores, bool keep_alpha, bool keep_emission,
                std::size_t n_threads, Body body) {
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
        ChainWorkspace& workspace = workspaces[worker];
        ChainLane lanes[kInStep];
        const std::size_t first = group * kMost, count = std::min(kMost, order.size() - first);
        std::size_t n_rows = 0, n_taken = 0;
        for (std::size_t l = 0; l < count; ++l) {
            lanes[l].example = order[first + l];
            lanes[l].length = scores.length(lanes[l].example);
            n_rows += (keep_alpha ? lanes[l].length : 2) + (keep_emission ? lanes[l].length : 2);
            n_taken += lanes[l].length;
        }
        double* rows = workspace.rows.require(n_rows * topology.width());
        double* taken = workspace.taken.require(n_taken);
        for (std::size_t l = 0; l < count; ++l) {
            lanes[l].alpha = rows;
            rows += (keep_alpha ? lanes[l].length : 2) * topology.width();
            lanes[l].emission = rows;
            rows += (keep_emission ? lanes[l].length : 2) * topology.width();
            lanes[l].taken = taken;
            taken += lanes[l].length;
        }
        body(workspace, std::span<ChainLane>(lanes, count));
    });
}

// Sums over labellings: the fast arithmetic first, the safe one for examples whose scores are too far apart for it.
class SumPasses {
  public:
    SumPasses(const ChainTopology& topology, const ChainScores& scores, bool keep_alpha, bool keep_emission)
        : tables_(topology, scores),
          scaled_{topology, scores, tables_.get(Domain::exponential), keep_alpha, keep_emission},
          log_{topology, scores, nullptr, keep_alpha, keep_emission} {}

    void forward(ChainWorkspace& workspace, std::span<ChainLane> lanes) {
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

    // The context that a lane was computed in.
    ChainContext context_of(const ChainLane& lane) { return lane.out_of_range ? logarithmic() : scaled_; }

  private:
    ChainContext logarithmic() {
        ChainContext context = log_;
        context.shared = tables_.get(Domain::logarithm);
        return context;
    }

    SharedTables tables_;
    ChainContext scaled_, log_;
};

}  // namespace dualfield
