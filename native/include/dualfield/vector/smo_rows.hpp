// What the vector code is given by sequential minimal optimisation of binary problems: numbers by point.
//
// With p_j the dual probability of class 1 and F = K B the scores, pull_j = F_j - log(p_j / (1 - p_j)): Keerthi's H_j.
// At the optimum all pulls are equal, to minus the bias; a point whose pull is higher wants a larger p_j.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dualfield {

// pull += step * (row_low - row_up): step has moved from the coefficient of one point to that of another. Without
// row_low, one coefficient changed; without row_up, none.
template <class T>
struct SmoScan {
    T* pull;
    const T *row_up, *row_low;
    T step;
    const T* held;  // > 0: p_j may not grow; < 0: p_j may not shrink; null: all are free
};

// Highest pull of the points that may grow, lowest of those that may shrink; the first of several, -1 for none.
template <class T>
struct SmoExtremes {
    T highest, lowest;
    std::int32_t up = -1, low = -1;
};

// Partners for the extreme points: the square of the difference of pulls over the curvature along the pair.
template <class T>
struct SmoPartners {
    const T *pull, *bend;  // bend_j: K_jj and the curvature of the entropy at j
    const T *row_up, *row_low;
    T highest, lowest, bend_up, bend_low;  // of the extreme points
    const T* held;
};
template <class T>
struct SmoChoice {
    T gain_of_low = T(0), gain_of_up = T(0);
    std::int32_t low = -1, up = -1;  // partner of the highest, partner of the lowest
};

// The duality gap sum_j c_j KL(p_j || sigmoid(F_j + bias)), its slope and curvature along the bias.
template <class T>
struct SmoGap {
    const T *pull, *p, *q, *weights;  // q = 1 - p
    T bias;
};
struct SmoGapSums {
    double gap = 0.0, slope = 0.0, curvature = 0.0;
};

}  // namespace dualfield
