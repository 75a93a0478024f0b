// Solvers of problems whose examples are read block by block: see streamed_dual.cpp.
#pragma once

#include "dualfield/solvers/dual/block_dual.hpp"
#include "dualfield/streaming/block_source.hpp"

namespace dualfield {

struct StreamSettings {
    std::size_t bytes = 0;      // of memory
    std::size_t fixed = 0;      // of these are taken by weights and tables; the rest is for blocks and their states
    std::size_t n_threads = 1;  // for sums over all blocks
    // Blocks whose examples are visited together, other ones in every sweep. Alone, examples of a block would follow
    // each other in all sweeps: a million tokens in blocks of eighty sentences then take 2.5 times the passes.
    std::size_t n_mixed = 8;
    bool is_kept_twice = false;  // on disk, for checkpoints
};

// As solve_block_dual. The result depends on how the examples are cut into blocks, and not on the memory.
LinearSolution solve_streamed_dual(const BlockSource& source, StateStore& store, const double* start,
                                   const BlockDualSettings& settings, const StreamSettings& streaming,
                                   const Callbacks& callbacks);

// minimises 1/2 |w|^2 + sum_i c_i [ max_y (score(y) + cost(y)) - score(y_i) ], on chains of order 1 without own edges,
// at temperature 0. `start` [size]: weights that the result must not be worse than; may be null.
LinearSolution solve_streamed_hinge(const BlockSource& source, StateStore& store, const double* start,
                                    const BlockDualSettings& settings, const StreamSettings& streaming,
                                    const Callbacks& callbacks);

// sum_i c_i loss_i at w [size].
double streamed_loss(const BlockSource& source, const double* w, std::size_t n_threads);

}  // namespace dualfield
