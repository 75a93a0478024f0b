// Where the duals of kernel logistic regression begin: B_i = eps c_i (D_i - prior), on the line from no scores at all.
//
// There are three of these duals, because each keeps its point as the innermost loop of its solver reads it:
//
//   DualPoint    p and log p by column, in the precision of the kernel matrix, for the vector code of working sets
//   SoftmaxDual  masses of all classes by point, in double precision, for moves of mass at one point
//   BinaryDual   F - logit p by column, next to both masses, for the scan over all points at each step of Keerthi's SMO
//
// One form for all would round differently, and the scan needs its column: on two classes, 3,000 points with 20
// features, SoftmaxDual and its solver take 0.068 s where BinaryDual and its solver take 0.050 s at C = 1, and 0.24 s
// where these take 0.067 s at C = 100. Steps differ as well as duals; what the dual alone costs was not measured.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "dualfield/objectives/kernel_problem.hpp"

namespace dualfield {

// The sum of c_i, by class.
template <class T>
std::vector<double> class_weights(const KernelProblem<T>& problem) {
    std::vector<double> weights(problem.n_classes, 0.0);
    for (std::size_t i = 0; i < problem.size(); ++i)
        weights[static_cast<std::size_t>(problem.labels[i])] += static_cast<double>(problem.weights[i]);
    return weights;
}

// The bias of a class without points has no minimum.
inline void require_every_class(const std::vector<double>& weights) {
    if (!(*std::min_element(weights.begin(), weights.end()) > 0.0))
        throw std::invalid_argument("every class must be present");
}

// eps where the dual is highest along the line, by bisection in log eps: falls(log eps, eps) tells whether it is past.
template <class Falls>
double highest_on_line(const Falls& falls) {
    double low = -40.0, high = 0.0;
    for (int step = 0; step < 60; ++step) {
        const double middle = 0.5 * (low + high);
        (falls(middle, std::exp(middle)) ? high : low) = middle;
    }
    return std::exp(0.5 * (low + high));
}

}  // namespace dualfield
