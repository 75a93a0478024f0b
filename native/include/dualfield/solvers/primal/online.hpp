// Solvers that look at one example after another. See online.cpp.
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

// Learning from mistakes: w moves along the features of the truth minus those of the prediction. Nothing in particular
// is minimised; the weights c_i, divided by the largest, scale the moves.
struct OnlineSettings {
    std::size_t n_epochs = 100;
    double epsilon = 0.0;  // a mean loss below it ends the epochs
    std::uint64_t seed = 0;
};

struct PassiveAggressiveSettings : OnlineSettings {
    int type = 1;  // 0: the loss becomes zero; 1: moves are at most c; 2: they are shortened by 1 / (2 c)
    double c = 1.0;
    bool error_sensitive = true;  // the margin is the root of the number of wrong labels; false: 1
    bool average = true;
};
// The shortest move that gives the truth its margin (Crammer et al. 2006).
LinearSolution solve_passive_aggressive(const Problem& problem, const double* start,
                                        const PassiveAggressiveSettings& settings, const Callbacks& callbacks);

struct ArowSettings : OnlineSettings {
    double variance = 1.0;  // of every weight at first
    double gamma = 1.0;     // the larger, the shorter the moves, and the slower the variances fall
};
// Every weight has a variance, which falls as it moves; weights of low variance move less (Crammer et al. 2009). The
// margin is the number of wrong labels.
LinearSolution solve_arow(const Problem& problem, const double* start, const ArowSettings& settings,
                          const Callbacks& callbacks);

}  // namespace dualfield
