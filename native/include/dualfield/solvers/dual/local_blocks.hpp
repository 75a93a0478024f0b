// The hinge on the local polytope of graphs, to a certified gap: see local_blocks.cpp.
#pragma once

#include <cstdint>

#include "dualfield/solvers/dual/block_dual.hpp"

namespace dualfield {

struct LocalBlocksSettings {
    double tolerance = 1e-3;  // on gap / dual
    double most_passes = 1e300;
    std::uint64_t seed = 0;     // of the order of the examples
    std::size_t n_threads = 1;  // for certificates; the ascent itself is serial
};

// Bytes of its state.
std::size_t local_blocks_bytes(const Problem& problem);

// minimises 1/2 |w|^2 + sum_i c_i [ max over mu in L of <A_i w + D_i, mu> - <A_i w, u_i> ], L the local polytope of a
// graph, temperature 0. The structure must be one of graphs, GraphParts. `start` [size]: weights that the result must
// not be worse than; may be null. No partly labelled examples.
LinearSolution solve_local_blocks(const Problem& problem, const double* start, const LocalBlocksSettings& settings,
                                  const Callbacks& callbacks);

}  // namespace dualfield
