// Solvers that look at one example after another: stochastic gradients and the perceptron. See online.cpp.
#pragma once

#include <cstdint>

#include "dualfield/solvers/dual/block_dual.hpp"

namespace dualfield {

struct SgdSettings {
    std::size_t n_epochs = 30;
    double rate = 0.0;  // of the first step; 0: chosen by trying a few on some of the examples
    bool average = true;
    std::uint64_t seed = 0;
    std::size_t n_seen = 0;  // examples that the start has seen: as if they were part of the data
};
// 1/2 |w|^2 + sum_i c_i loss_i by stochastic gradients with rate / (1 + rate * lambda * t); no gap is computed.
LinearSolution solve_sgd(const Problem& problem, const double* start, const SgdSettings& settings,
                         const Callbacks& callbacks);

struct PerceptronSettings {
    std::size_t n_epochs = 10;
    bool average = true;
    std::uint64_t seed = 0;
};
// Collins' perceptron: w moves from the features of the predicted labelling to those of the true one. Minimises
// nothing in particular; the weights c_i scale the moves.
LinearSolution solve_perceptron(const Problem& problem, const double* start, const PerceptronSettings& settings,
                                const Callbacks& callbacks);

}  // namespace dualfield
