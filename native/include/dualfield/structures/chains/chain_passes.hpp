// What forward and backward passes over one to four examples at a time work on.
//
// Up to four examples walk in step: the rows of the transition table are loaded once for all of them, and one example's
// arithmetic fills the waiting time of another's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dualfield/structures/chains/chain_scores.hpp"

namespace dualfield {

inline constexpr int kInStep = 4;

// One example under way. Row t of a kept array is at t * width; an array that is not kept has room for two rows.
struct ChainLane {
    std::size_t example = 0, length = 0;
    double* alpha = nullptr;  // [length][width] normalised forward rows
    double* emission =
        nullptr;  // [length][width] node scores; after a backward pass row t >= 1 has taken in what follows it
    double* taken = nullptr;  // [length] what normalising row t took out (a sum, or a maximum)
    double* nodes = nullptr;  // [length][K] where a backward pass leaves its result; null if not wanted
    double* clique_sums =
        nullptr;  // [K][K] where an interleaved pass leaves the summed clique marginals; null if not wanted
    std::int32_t* labels = nullptr;  // [length] where trace_back leaves the best labelling
    double log_partition = 0.0;  // in units of the scaled scores; MaxPlus: the maximum. -inf if no labelling is allowed
    bool bad_number = false;     // NaN or +inf among the scores
    bool out_of_range = false;   // ScaledSum only: results may have underflowed; do it again with LogSum
};

// Memory of one thread, reused from call to call.
struct ChainWorkspace {
    Buffer rows, taken, gathered, label_rows, beta;
    Buffer nodes, outer, edge_marginals, clique_sums;  // for queries that look at the rows afterwards
    TransitionTable edge_table;                        // for scores that differ from edge to edge
};

// What the passes of one query have in common.
struct ChainContext {
    const ChainTopology& topology;
    const ChainScores& scores;
    const TransitionTable* shared;  // null where transition scores differ from edge to edge
    bool keep_alpha, keep_emission;

    // The table of the edge that ends at node t of an example: the shared one, or the edge's own, filled into the
    // workspace in the direction that is asked for.
    enum class Direction { forward, backward };
    const TransitionTable& table_at(ChainWorkspace& workspace, std::size_t example, std::size_t t, Domain domain,
                                    Direction direction) const {
        if (shared) return *shared;
        const bool ahead = direction == Direction::forward;
        workspace.edge_table.fill(topology, scores.transition_at(example, t, topology.n_cliques()),
                                  scores.inverse_temperature, domain, ahead, !ahead);
        return workspace.edge_table;
    }
};

// A forward pass leaves rows and log-partition in each lane; lengths must be at least 1. The backward pass of the same
// algebra, after a forward pass with everything kept, leaves in lane.nodes the marginals of the labels (ScaledSum and
// LogSum) or the best score of a labelling through each label (MaxPlus). The passes are in routines.hpp.

// The scores of node t over labels, scaled by the inverse temperature, with cost, start and stop scores added: the
// plain version of what the passes do, for code that is not in a hurry.
double node_score(const ChainScores& scores, std::size_t n_labels, std::size_t example, std::size_t t,
                  std::size_t label);

}  // namespace dualfield
