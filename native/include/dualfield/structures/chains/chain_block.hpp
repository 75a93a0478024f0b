// Marginals of one example with clique scores of its own: what a solver that visits examples one by one asks for.
#pragma once

#include <cstdint>

#include "dualfield/structures/chains/chain_passes.hpp"
#include "dualfield/structures/structure.hpp"

namespace dualfield {

class ChainBlock {
  public:
    // limits [K]: added at the first and at the last node, null for zeros.
    ChainBlock(const ChainTopology& topology, const double* start_limits, const double* stop_limits)
        : topology_(topology), start_(start_limits), stop_(stop_limits) {}

    struct Answer {
        double log_partition;
        Status status;
    };
    // node [length][K] and cliques [n_cliques] are scores; their marginals go to node_marginals, and those of the
    // cliques, summed over the edges, to clique_sums.
    Answer marginals(const double* node, std::size_t length, const double* cliques, double* node_marginals,
                     double* clique_sums);

    // The best labelling into labels [length]; log_partition is its score.
    Answer best(const double* node, std::size_t length, const double* cliques, std::int32_t* labels);

  private:
    ChainScores scores(const double* node, std::size_t length, const double* cliques);

    const ChainTopology& topology_;
    const double *start_, *stop_;
    ChainWorkspace workspace_;
    TransitionTable table_;
    std::int64_t offsets_[2] = {0, 0}, edge_offsets_[2] = {0, 0};
};

}  // namespace dualfield
