// Dual ascent, one example at a time, with exponentiated gradients: see block_dual.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "dualfield/objectives/objective.hpp"
#include "dualfield/solvers/solve.hpp"

namespace dualfield {

struct BlockDualSettings {
    double tolerance = 1e-4;  // on gap / dual
    double most_passes = 1e300;
    std::uint64_t seed = 0;     // of the order of the examples
    std::size_t n_threads = 1;  // for certificates; the ascent itself is serial
    double patience = 1e300;    // gives up (too_slow) where it expects to need more passes than this
    double l1_ratio = 0.0;      // rho of the elastic net
};

struct LinearSolution {
    std::vector<double> parameters;  // [problem.size()]
    double objective = 0.0, gap = 0.0;
    Outcome outcome = Outcome::iteration_limit;
    std::size_t n_iterations = 0;
};

// Bytes that the state of the dual takes: in single precision unless the tolerance is very small or the penalty weak.
std::size_t block_dual_bytes(const Problem& problem, double tolerance, double l1_ratio);

// minimises (1 - rho) / 2 |w|^2 + rho |w|_1 + sum_i c_i [ M_T(A_i w + D_i) - <A_i w, u_i> ]. `start` [size]: begin with
// the labellings that these parameters make likely, or null: with the true ones. No partly labelled examples.
LinearSolution solve_block_dual(const Problem& problem, const double* start, const BlockDualSettings& settings,
                                const Callbacks& callbacks);

}  // namespace dualfield
