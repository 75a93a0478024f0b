// What the vector code for the changes of a chain's marginals works on.
//
// A chain is drawn from its first node to its last, by the probabilities of its steps, p(state at t | state at t - 1).
// Their tables are laid out as forward tables are: [group][state before][state].
#pragma once

#include <cstddef>

#include "dualfield/structures/chains/chain_topology.hpp"

namespace dualfield {

// The probabilities of the steps and states of a chain of order 1, by one pass back and one pass forth. Nothing is
// forbidden between labels, and no two scores of transitions are further apart than kMostRange: then no sum can vanish.
struct ChainSharesTask {
    static constexpr double kMostRange = 400.0;

    const ChainTopology* topology;
    std::size_t length;   // at least 1
    const double* table;  // [size]: exponentials of transitions, the largest is 1
    double* rows;         // [length][width]: scores of the labels, -inf in the padding; overwritten
    double *shares, *states;
    double* memory;  // [width]
};

// One example and one direction. `size` is that of a forward table, `width` the number of states with padding.
struct ChainSlopeTask {
    const ChainTopology* topology;
    std::size_t length;    // at least 1
    const double* shares;  // [length - 1][size]: of the steps, 0 where there is no state
    const double* states;  // [length][width]: probabilities of the states
    const double* node;    // [length][width]: the direction, and that of steps, for all edges or edge by edge
    const double* cliques;
    std::size_t clique_stride;  // 0, or size
    double *behind, *whole;     // [length][width]: memory
    double* rest;               // [2 width]: memory
    double* change;             // [length][width]: of the states
    double* steps;              // of the steps; added up over the edges, or edge by edge; zeros at first
    std::size_t step_stride;    // 0, or size
};

// All covariances of one example of a chain of order 1 whose forward tables are [label before][width]. Places of the
// answer are labels, [length][width], then transitions, [label before][width]; those of padding mean nothing.
struct ChainCovarianceTask {
    std::size_t length, n_labels, width;  // at least 1
    const double *shares, *states;        // as in ChainSlopeTask
    double* memory;                       // [memory_size()]
    double* out;  // [size()][size()]: of labels with the same and later ones, of transitions with labels and
                  // transitions; the rest is not written

    std::size_t size() const { return (length + n_labels) * width; }
    std::size_t memory_size() const { return (2 * n_labels + 1) * n_labels * width; }
};

}  // namespace dualfield
