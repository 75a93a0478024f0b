// The hinge on any structure, to a certified gap: see path_blocks.cpp.
#pragma once

#include <cstdint>

#include "dualfield/solvers/dual/block_dual.hpp"

namespace dualfield {

struct PathBlocksSettings {
    double tolerance = 1e-3;  // on gap / dual
    double most_passes = 1e300;
    std::uint64_t seed = 0;     // of the order of the examples
    std::size_t n_threads = 1;  // for certificates; the ascent itself is serial
};

// minimises 1/2 |w|^2 + sum_i c_i [ max_y (score(y) + cost(y)) - score(y_i) ], temperature 0. `start` [size]: weights
// that the result must not be worse than; may be null. No partly labelled examples.
LinearSolution solve_path_blocks(const Problem& problem, const double* start, const PathBlocksSettings& settings,
                                 const Callbacks& callbacks);

}  // namespace dualfield
