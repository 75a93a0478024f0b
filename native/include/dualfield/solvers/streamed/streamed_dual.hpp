// Solvers of problems whose examples are read block by block: see streamed_dual.cpp.
#pragma once

#include "dualfield/solvers/dual/block_dual.hpp"
#include "dualfield/streaming/block_source.hpp"

namespace dualfield {

struct StreamSettings {
    std::size_t bytes = 0;       // for blocks and their states
    std::size_t n_threads = 1;   // for sums over all blocks
    std::size_t n_mixed = 1;     // blocks whose examples are visited together
    bool is_kept_twice = false;  // on disk, for checkpoints
};

// As solve_block_dual. The result depends on how the examples are cut into blocks, and not on the memory.
LinearSolution solve_streamed_dual(const BlockSource& source, StateStore& store, const double* start,
                                   const BlockDualSettings& settings, const StreamSettings& streaming,
                                   const Callbacks& callbacks);

// sum_i c_i loss_i at w [size].
double streamed_loss(const BlockSource& source, const double* w, std::size_t n_threads);

}  // namespace dualfield
