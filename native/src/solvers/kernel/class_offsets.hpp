// The offsets o, one for each class, that minimise  sum_i c_i [log sum_y exp(s_iy + o_y) - s_i,y_i - o_y_i].
//
// Twice of use in a softmax problem with bias: for scores s = F the offsets are the best bias, and for s = log p they
// tilt a dual point p onto the plane sum_i c_i (D_i - p_i) = 0, where duals with a bias live.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dualfield/objectives/kernel_problem.hpp"

namespace dualfield {

struct OffsetProblem {
    std::size_t n_classes;
    bool pinned;  // class 0 has no offset
    std::span<const std::int32_t> labels;
    std::span<const double> weights;
};

// p = softmax(s); returns log sum exp.
inline double softmax_row(std::span<double> s) {
    const double top = *std::max_element(s.begin(), s.end());
    double total = 0.0;
    for (double& value : s) total += value = std::exp(value - top);
    for (double& value : s) value /= total;
    return top + std::log(total);
}

// Sums over all points at given offsets: returns the loss, adds slopes [n_classes] and curvature
// [n_classes][n_classes].
template <class Scores>
double offset_sums(const OffsetProblem& problem, const Scores& scores, const std::vector<double>& offsets,
                   std::vector<double>& slopes, std::vector<double>& curvature) {
    const std::size_t n_classes = problem.n_classes;
    std::vector<double> row(n_classes);
    std::fill(slopes.begin(), slopes.end(), 0.0);
    std::fill(curvature.begin(), curvature.end(), 0.0);
    double loss = 0.0;
    for (std::size_t i = 0; i < problem.labels.size(); ++i) {
        scores(i, row.data());
        const auto label = static_cast<std::size_t>(problem.labels[i]);
        const double weight = problem.weights[i];
        for (std::size_t y = 0; y < n_classes; ++y) row[y] += offsets[y];
        const double own = row[label];
        loss += weight * (softmax_row(row) - own);
        for (std::size_t y = 0; y < n_classes; ++y) {
            const double mass = weight * row[y];
            slopes[y] += mass;
            if (row[y] < 1e-12) continue;
            double* line = curvature.data() + y * n_classes;
            line[y] += mass;
            for (std::size_t z = 0; z < n_classes; ++z) line[z] -= mass * row[z];
        }
        slopes[label] -= weight;
    }
    return loss;
}

// Newton's method with halving, from the offsets given. scores(i, row) writes the scores of point i.
template <class Scores>
void fit_offsets(const OffsetProblem& problem, const Scores& scores, std::vector<double>& offsets) {
    const std::size_t n = problem.n_classes, skip = problem.pinned ? 1 : 0, rows = n - skip;
    std::vector<double> slopes(n), curvature(checked_product(n, n)), step(rows), matrix(checked_product(rows, rows));
    double loss = offset_sums(problem, scores, offsets, slopes, curvature), mass = 0.0;
    for (const double weight : problem.weights) mass += weight;
    const auto worst = [&] {
        double top = 0.0;
        for (std::size_t y = skip; y < n; ++y) top = std::max(top, std::abs(slopes[y]));
        return top;
    };
    double left = worst();
    for (int round = 0; round < 100 && left > 1e-15 * mass; ++round) {
        for (std::size_t r = 0; r < rows; ++r) {
            step[r] = slopes[r + skip];
            for (std::size_t s = 0; s < rows; ++s) matrix[r * rows + s] = curvature[(r + skip) * n + s + skip];
        }
        solve_curvature(rows, !problem.pinned, matrix, step.data());
        double longest = 0.0;
        for (const double value : step) longest = std::max(longest, std::abs(value));
        double t = longest > 4.0 ? 4.0 / longest : 1.0, next = loss;
        const std::vector<double> before = offsets;
        for (int half = 0; half < 40; ++half, t *= 0.5) {
            for (std::size_t r = 0; r < rows; ++r) offsets[r + skip] = before[r + skip] - t * step[r];
            next = offset_sums(problem, scores, offsets, slopes, curvature);
            // Where the loss no longer shows a difference, its slope still does.
            if (next < loss || (next <= loss + 1e-13 * std::abs(loss) && worst() < left)) break;
        }
        if (!(worst() < left) && !(next < loss - 1e-13 * std::abs(loss))) {
            offsets = before;
            break;
        }
        loss = next;
        left = worst();
    }
    if (problem.pinned) return;
    double mean = 0.0;
    for (const double value : offsets) mean += value / static_cast<double>(n);
    for (double& value : offsets) value -= mean;
}

}  // namespace dualfield
