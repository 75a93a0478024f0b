// The hinge on chains, trees and graphs, to a certified gap: see flow_swap.cpp.
#pragma once

#include <cstdint>

#include "dualfield/solvers/dual/block_dual.hpp"

namespace dualfield {

struct FlowSwapSettings {
    double tolerance = 1e-3;  // on gap / dual
    double most_passes = 1e300;
    std::uint64_t seed = 0;     // of the order of the examples
    std::size_t n_threads = 1;  // for certificates; the ascent itself is serial
};

// minimises 1/2 |w|^2 + sum_i c_i [ max_y (score(y) + cost(y)) - score(y_i) ] on chains of order 1 without own
// edges, and on structures that list their junctions, at temperature 0.
// `start` [size]: weights that the result must not be worse than; may be null. `flow`: where the dual begins, what
// `flow_out` gave for the same inputs with any labels; null: at the true labellings. No partly labelled examples.
LinearSolution solve_flow_swap(const Problem& problem, const double* start, const SolverState* flow,
                               const FlowSwapSettings& settings, const Callbacks& callbacks, SolverState* flow_out);

}  // namespace dualfield
