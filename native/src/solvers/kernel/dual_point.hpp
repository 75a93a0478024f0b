// The dual point of a kernel softmax problem with its scores: where it starts, what its gap is, how its coefficients
// are kept summing to zero, and the bias that goes with it. What working sets work on (working_set.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "curvature_check.hpp"
#include "dual_start.hpp"
#include "dualfield/objectives/kernel_problem.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

template <class T>
class DualPoint {
  public:
    DualPoint(const KernelProblem<T>& problem, ThreadTeam& team)
        : problem_(problem),
          team_(team),
          native_(routines().kernel<T>()),
          gram_(*problem.gram),
          n_(problem.size()),
          classes_(problem.n_classes),
          first_(problem.pinned ? 1 : 0),
          stride_(padded_to_panels<T>(problem.size())),
          bias_(classes_, 0.0),
          bias_rounded_(classes_, T(0)),
          imbalance_(classes_, 0.0),
          curvature_(checked_product(classes_, classes_), 0.0),
          scores_(checked_product(classes_, stride_), T(0)),
          log_p_(checked_product(classes_, stride_), T(0)),
          p_(checked_product(classes_, stride_), T(0)),
          terms_(stride_, T(0)) {
        for (const T value : problem_.weights) mass_ += static_cast<double>(value);
    }

  protected:
    double relative_gap() const {
        const double dual = sums_.entropy - 0.5 * sums_.alignment;
        check_number<T>(dual);
        check_number<T>(sums_.gap);
        return dual > 0.0 ? sums_.gap / dual : std::numeric_limits<double>::infinity();
    }

    std::size_t label(std::size_t i) const { return static_cast<std::size_t>(problem_.labels[i]); }
    double weight(std::size_t i) const { return static_cast<double>(problem_.weights[i]); }

    // p_i = (1 - eps) D_i + eps prior: feasible, B = eps c (D - prior); eps by a search of the dual along it, which
    // needs one product.
    void start_from_priors() {
        std::vector<double> prior = class_weights(problem_);
        for (double& value : prior) value /= mass_;
        for (std::size_t c = 0; c < classes_; ++c)
            for (std::size_t i = 0; i < n_; ++i) p_[c * stride_ + i] = static_cast<T>(prior[c]);
        multiply();
        double square = 0.0;
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t c = first_; c < classes_; ++c)
                square += weight(i) * ((label(i) == c ? 1.0 : 0.0) - prior[c]) *
                          static_cast<double>(scores_[c * stride_ + i]);
        square = check_curvature(square);
        double best = -std::numeric_limits<double>::infinity(), scale = 1.0;
        for (double step = -18.0; step <= 0.0; step += 0.25) {
            const double eps = std::exp(step);
            double entropy = 0.0;
            for (std::size_t y = 0; y < classes_; ++y)
                for (std::size_t c = 0; c < classes_; ++c) {
                    const double value = (y == c ? 1.0 - eps : 0.0) + eps * prior[c];
                    if (value > 0.0) entropy -= mass_ * prior[y] * value * std::log(value);
                }
            const double dual = entropy - 0.5 * eps * eps * square;
            if (dual > best) {
                best = dual;
                scale = eps;
            }
        }
        for (std::size_t c = 0; c < classes_; ++c)
            for (std::size_t i = 0; i < n_; ++i) {
                const double value = (label(i) == c ? 1.0 - scale : 0.0) + scale * prior[c];
                p_[c * stride_ + i] = static_cast<T>(value);
                log_p_[c * stride_ + i] = static_cast<T>(std::log(value));
                scores_[c * stride_ + i] *= static_cast<T>(scale);
            }
        if (problem_.with_bias)
            for (std::size_t c = 0; c < classes_; ++c) bias_[c] = std::log(prior[c] / prior[0]);
    }

    void start_from(const KernelStart& start) {
        const std::size_t rows = problem_.n_rows();
        const double smallest = std::exp(static_cast<double>(kLogFloor<T>) / 2);
        for (std::size_t i = 0; i < n_; ++i) {
            double total = 0.0;
            std::vector<double> p(classes_);
            double rest = 1.0;
            for (std::size_t c = first_; c < classes_; ++c) {
                p[c] = (label(i) == c ? 1.0 : 0.0) - start.coefficients[i * rows + c - first_] / weight(i);
                rest -= p[c];
            }
            if (first_) p[0] = rest;
            for (double& value : p) total += value = std::clamp(value, smallest, 1.0);
            for (std::size_t c = 0; c < classes_; ++c) {
                p_[c * stride_ + i] = static_cast<T>(p[c] / total);
                log_p_[c * stride_ + i] = static_cast<T>(std::log(p[c] / total));
            }
        }
        if (problem_.with_bias) balance();
        multiply();
        for (std::size_t c = first_; problem_.with_bias && c < classes_; ++c)
            bias_[c] = start.bias[c - first_] - (first_ ? 0.0 : start.bias[0]);
    }

    // B_i = c_i (D_i - p_i) for class c, the label's as the sum of the others: no difference of nearly equal numbers.
    template <class P>
    double coefficient(std::size_t i, std::size_t c, const P& p) const {
        if (c != label(i)) return -weight(i) * static_cast<double>(p(c));
        double others = 0.0;
        for (std::size_t other = 0; other < classes_; ++other)
            if (other != c) others += static_cast<double>(p(other));
        return weight(i) * others;
    }

    // scores = K B, and what a matrix in higher precision would add.
    void multiply() {
        const std::size_t rows = problem_.n_rows();
        Aligned<T> coefficients(n_ * rows);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t c = first_; c < classes_; ++c)
                coefficients[i * rows + c - first_] =
                    static_cast<T>(coefficient(i, c, [&](std::size_t k) { return p_[k * stride_ + i]; }));
        gram_.product(coefficients.data(), rows, scores_.data() + first_ * stride_, stride_, team_);
        for (std::size_t i = 0; problem_.correction && i < n_; ++i)
            for (std::size_t r = 0; r < rows; ++r)
                scores_[(r + first_) * stride_ + i] += static_cast<T>(problem_.correction[i * rows + r]);
        passes_ += 1.0;
        if (problem_.with_bias) sum_imbalance();
    }

    void sum_imbalance() {
        std::fill(imbalance_.begin(), imbalance_.end(), 0.0);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t c = 0; c < classes_; ++c)
                imbalance_[c] += coefficient(i, c, [&](std::size_t k) { return p_[k * stride_ + i]; });
    }

    // Tilts all p_i so that the coefficients sum to zero, in double precision (iterative proportional fitting, sped up
    // by Newton's method).
    void balance() {
        for (int round = 0; round < 60; ++round) {
            sum_imbalance();
            double worst = 0.0;
            for (const double value : imbalance_) worst = std::max(worst, std::abs(value));
            if (worst <= mass_ * (sizeof(T) == 4 ? 1e-7 : 1e-14)) return;
            update_curvature();
            std::vector<double> step = imbalance_;
            solve_curvature(classes_, true, curvature_, step.data());
            for (double& value : step) value = std::clamp(value, -2.0, 2.0);
            for (std::size_t i = 0; i < n_; ++i) {
                double total = 0.0;
                for (std::size_t c = 0; c < classes_; ++c)
                    total += static_cast<double>(p_[c * stride_ + i]) * std::exp(step[c]);
                for (std::size_t c = 0; c < classes_; ++c) {
                    const double log_p = static_cast<double>(log_p_[c * stride_ + i]) + step[c] - std::log(total);
                    log_p_[c * stride_ + i] = static_cast<T>(std::max(log_p, static_cast<double>(kLogFloor<T>)));
                    p_[c * stride_ + i] = static_cast<T>(std::exp(log_p));
                }
            }
        }
    }

    void refresh() {
        if (problem_.with_bias) balance();
        multiply();
        settle_bias(6);
    }

    // The gap at the present scores, with the best bias.
    void settle_bias(int rounds) {
        evaluate();
        if (!problem_.with_bias) return;
        update_curvature();
        for (int round = 0; round < rounds && step_bias(); ++round) evaluate();
    }

    DualColumns<T> columns() {
        for (std::size_t c = 0; c < classes_; ++c) bias_rounded_[c] = static_cast<T>(bias_[c]);
        return {.n_classes = classes_,
                .stride = stride_,
                .scores = scores_.data(),
                .log_p = log_p_.data(),
                .p = p_.data(),
                .weights = problem_.weights.data(),
                .bias = bias_rounded_.data(),
                .labels = problem_.labels.data(),
                .terms = terms_.data()};
    }

    // The gap and its terms at the present point; partial sums by chunk, added in order, whoever computed them.
    void evaluate() {
        begin_sums();
        const DualColumns<T> in = columns();
        team_.run(gram_.n_chunks(), [&](std::size_t, std::size_t chunk) {
            sum_chunk(in, chunk, chunk * Gram<T>::kChunk, std::min(n_, (chunk + 1) * Gram<T>::kChunk));
        });
        end_sums();
    }

    void begin_sums() { partial_.assign(gram_.n_chunks() * (classes_ + 3), 0.0); }

    void sum_chunk(const DualColumns<T>& in, std::size_t chunk, std::size_t first, std::size_t last) {
        double* target = partial_.data() + chunk * (classes_ + 3);
        DualSums sums{.shifts = problem_.with_bias ? target + 3 : nullptr};
        native_.dual_terms(in, first, last, sums);
        target[0] = sums.gap;
        target[1] = sums.entropy;
        target[2] = sums.alignment;
    }

    void end_sums() {
        sums_ = {};
        shifts_.assign(classes_, 0.0);
        for (std::size_t chunk = 0; chunk < gram_.n_chunks(); ++chunk) {
            const double* part = partial_.data() + chunk * (classes_ + 3);
            sums_.gap += part[0];
            sums_.entropy += part[1];
            sums_.alignment += part[2];
            for (std::size_t c = 0; c < classes_; ++c) shifts_[c] += part[3 + c];
        }
        sums_.alignment = check_curvature(sums_.alignment);
    }

    // alignment = <B, K B>.
    double check_curvature(double alignment) const {
        return checked_square(problem_, alignment, [&](std::size_t i, std::size_t r) {
            return std::abs(coefficient(i, r + first_, [&](std::size_t k) { return p_[k * stride_ + i]; }));
        });
    }

    // sum_i c_i (diag p_i - p_i p_i').
    void update_curvature() {
        std::fill(curvature_.begin(), curvature_.end(), 0.0);
        for (std::size_t at = 0; at < n_; at += 512)
            native_.class_moments(p_.data(), problem_.weights.data(), classes_, stride_, at, std::min(n_, at + 512),
                                  curvature_.data());
        for (std::size_t c = 0; c < classes_; ++c) {
            for (std::size_t d = c; d < classes_; ++d)
                curvature_[c * classes_ + d] = curvature_[d * classes_ + c] = -curvature_[c * classes_ + d];
            for (std::size_t i = 0; i < n_; ++i)
                curvature_[c * classes_ + c] += weight(i) * static_cast<double>(p_[c * stride_ + i]);
        }
        curvature_passes_ = passes_;
    }

    // One Newton step towards the best b for the present scores; false once it is there.
    bool step_bias() {
        std::vector<double> step = shifts_;
        solve_curvature(classes_, true, curvature_, step.data());
        double longest = 0.0;
        for (std::size_t c = 0; c < classes_; ++c) longest = std::max(longest, std::abs(step[c] - step[0]));
        const double shorten = longest > 2.0 ? 2.0 / longest : 1.0;
        for (std::size_t c = 0; c < classes_; ++c) bias_[c] -= shorten * (step[c] - step[0]);
        return longest > 1e-5;
    }

    void finish(KernelSolution& solution) {
        const std::size_t rows = problem_.n_rows();
        solution.gap = sums_.gap;
        solution.objective = sums_.entropy - 0.5 * sums_.alignment + sums_.gap;
        // Rounded p_i sum to zero up to rounding; the last tilt is in double precision.
        std::vector<double> tilt(classes_, 0.0), p(classes_);
        for (int round = 0;; ++round) {
            std::vector<double> sums(classes_, 0.0);
            solution.coefficients.assign(n_ * rows, 0.0);
            for (std::size_t i = 0; i < n_; ++i) {
                double total = 0.0;
                for (std::size_t c = 0; c < classes_; ++c)
                    total += p[c] = static_cast<double>(p_[c * stride_ + i]) * std::exp(tilt[c]);
                for (std::size_t c = 0; c < classes_; ++c) {
                    const double value = coefficient(i, c, [&](std::size_t k) { return p[k] / total; });
                    sums[c] += value;
                    if (c >= first_) solution.coefficients[i * rows + c - first_] = value;
                }
            }
            if (!problem_.with_bias || round == 3) break;
            solve_curvature(classes_, true, curvature_, sums.data());
            for (std::size_t c = 0; c < classes_; ++c) tilt[c] += std::clamp(sums[c], -2.0, 2.0);
        }
        for (std::size_t c = first_; c < classes_; ++c) solution.bias.push_back(bias_[c]);
    }

    const KernelProblem<T>& problem_;
    ThreadTeam& team_;
    const KernelRoutines<T>& native_;
    Gram<T>& gram_;
    const std::size_t n_, classes_, first_, stride_;
    std::vector<double> bias_;
    std::vector<T> bias_rounded_;
    std::vector<double> imbalance_;  // sum_i B_i, by class
    std::vector<double> curvature_, shifts_, partial_;
    double mass_ = 0.0;
    double passes_ = 0.0, curvature_passes_ = 0.0;
    DualSums sums_;
    Aligned<T> scores_, log_p_, p_, terms_;  // by columns
};

}  // namespace dualfield
