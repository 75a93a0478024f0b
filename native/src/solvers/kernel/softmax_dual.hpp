// A point of the dual of a softmax problem with a kernel: probabilities, scores, duality gap.
//
// p_iy is kept as the mass c_i p_iy and as log p_iy; coefficients are B_i = c_i (D_i - p_i), scores F = K B T by
// columns, without bias. For offsets b and a feasible point (with a bias: sum_i B_i = 0) the duality gap is sum_i c_i
// KL(p_i || softmax(F_i + b)), a sum of positive terms.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "class_offsets.hpp"
#include "curvature_check.hpp"
#include "dual_start.hpp"
#include "dualfield/objectives/kernel_problem.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

struct DualMeasure {
    double gap = 0.0, dual = 0.0;
};

template <class T>
class SoftmaxDual {
  public:
    SoftmaxDual(const KernelProblem<T>& problem, ThreadTeam& team)
        : problem_(problem),
          team_(team),
          n_(problem.size()),
          classes_(problem.n_classes),
          rows_(problem.n_rows()),
          first_(problem.pinned ? 1 : 0),
          stride_(padded_to_panels<T>(n_)),
          weight_(problem.weights.begin(), problem.weights.end()),
          total_(std::accumulate(weight_.begin(), weight_.end(), 0.0)),
          mass_(checked_product(n_, classes_)),
          log_p_(checked_product(n_, classes_)),
          scores_(checked_product(rows_, stride_), T(0)),
          rounded_(checked_product(n_, rows_)),
          spread_(rows_),
          sums_(classes_, 0.0) {}

    std::size_t first_row() const { return first_; }  // the first class with scores of its own
    double weight(std::size_t i) const { return weight_[i]; }
    double total() const { return total_; }  // sum_i c_i
    const double* mass(std::size_t i) const { return mass_.data() + i * classes_; }
    const double* log_p(std::size_t i) const { return log_p_.data() + i * classes_; }
    const std::vector<double>& sums() const { return sums_; }  // sum_i B_i, by class
    double n_products() const { return n_products_; }
    double score(std::size_t i, std::size_t y) const {
        return y < first_ ? 0.0 : static_cast<double>(scores_[(y - first_) * stride_ + i]);
    }

    // The kernel between classes; a pinned class has no features.
    double label_kernel(std::size_t y, std::size_t z) const {
        if (y < first_ || z < first_) return 0.0;
        if (!problem_.label_kernel) return y == z ? 1.0 : 0.0;
        return problem_.label_kernel[(y - first_) * rows_ + z - first_];
    }

    void set_mass(std::size_t i, std::size_t y, double mass) {
        mass_[i * classes_ + y] = mass;
        log_p_[i * classes_ + y] = std::log(mass / weight_[i]);
    }

    // The point that a solver starts from, feasible, and its scores. least: of any p.
    void begin(const KernelStart& start, double least) {
        const std::vector<double> of_class = class_weights(problem_);
        if (problem_.with_bias) require_every_class(of_class);
        if (start.coefficients.empty()) {
            prior_start(of_class);
        } else {
            given_start(start.coefficients, least);
            if (problem_.with_bias) tilt();
            product();
        }
    }

    // All points learn of a change of B_l, given by class; row l of the kernel.
    void spread(const T* row, const std::vector<double>& change) {
        times_label_kernel(change.data(), spread_.data());
        for (std::size_t y = first_; y < classes_; ++y) sums_[y] += change[y];
        constexpr std::size_t kPiece = 16384;  // columns that one thread takes
        team_.run((n_ + kPiece - 1) / kPiece, [&](std::size_t, std::size_t piece) {
            const std::size_t first = piece * kPiece, last = std::min(n_, first + kPiece);
            for (std::size_t r = 0; r < rows_; ++r)
                if (spread_[r] != T(0))
                    routines().kernel<T>().expand(&row, 1, spread_.data() + r, 1, 1, scores_.data() + r * stride_,
                                                  stride_, first, last);
        });
    }

    // Scores anew from the coefficients.
    void product() {
        std::fill(sums_.begin(), sums_.end(), 0.0);
        std::vector<double> row(classes_);
        for (std::size_t i = 0; i < n_; ++i) {
            for (std::size_t y = first_; y < classes_; ++y) sums_[y] += row[y] = coefficient(i, y);
            times_label_kernel(row.data(), rounded_.data() + i * rows_);
        }
        problem_.gram->product(rounded_.data(), rows_, scores_.data(), stride_, team_);
        n_products_ += 1.0;
    }

    // Multiplies all p_i by the same factors, one for each class, and normalises: then sum_i B_i = 0. Scores do not
    // follow.
    void tilt() {
        std::vector<double> offsets(classes_, 0.0);
        fit_offsets(
            offset_problem(), [&](std::size_t i, double* row) { std::copy_n(log_p(i), classes_, row); }, offsets);
        for (std::size_t i = 0; i < n_; ++i) {
            double *logs = log_p_.data() + i * classes_, *masses = mass_.data() + i * classes_;
            for (std::size_t y = 0; y < classes_; ++y) masses[y] = logs[y] += offsets[y];
            const double norm = softmax_row({masses, classes_});
            for (std::size_t y = 0; y < classes_; ++y) {
                logs[y] -= norm;
                masses[y] *= weight_[i];
            }
        }
    }

    void fit_bias(std::vector<double>& bias) const {
        fit_offsets(
            offset_problem(),
            [&](std::size_t i, double* row) {
                for (std::size_t y = 0; y < classes_; ++y) row[y] = score(i, y);
            },
            bias);
    }

    // Gap for the given offsets, by class, and dual value; infinite where scores overflowed.
    DualMeasure measure(const std::vector<double>& offsets) const {
        double gap = 0.0, entropy = 0.0, square = 0.0;
        std::vector<double> row(classes_);
        for (std::size_t i = 0; i < n_; ++i) {
            for (std::size_t y = 0; y < classes_; ++y) {
                row[y] = score(i, y) + offsets[y];
                entropy -= mass(i)[y] * log_p(i)[y];
                square += coefficient(i, y) * score(i, y);
            }
            gap += weight_[i] * divergence(i, row);
        }
        if (!std::isfinite(gap) || !std::isfinite(square)) return {.gap = kInfinity, .dual = -kInfinity};
        square = checked_square(problem_, square, [&](std::size_t i, std::size_t r) {
            return std::abs(coefficient(i, r + first_)) * (problem_.label_kernel ? label_size() : 1.0);
        });
        return {.gap = gap, .dual = entropy - 0.5 * square};
    }

    std::vector<double> coefficients() const {
        std::vector<double> result(n_ * rows_);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t r = 0; r < rows_; ++r) result[i * rows_ + r] = coefficient(i, r + first_);
        return result;
    }

  private:
    // A bound on the root of what the kernel between classes makes of a square.
    double label_size() const {
        double total = 0.0;
        for (std::size_t r = 0; r < rows_; ++r) total += std::max(problem_.label_kernel[r * rows_ + r], 0.0);
        return std::sqrt(total);
    }
    std::size_t label(std::size_t i) const { return static_cast<std::size_t>(problem_.labels[i]); }
    OffsetProblem offset_problem() const { return {classes_, problem_.pinned, problem_.labels, weight_}; }

    // The label's coefficient as the sum of the other masses: no difference of nearly equal numbers.
    double coefficient(std::size_t i, std::size_t y) const {
        if (y != label(i)) return -mass(i)[y];
        double others = 0.0;
        for (std::size_t z = 0; z < classes_; ++z) others += z == y ? 0.0 : mass(i)[z];
        return others;
    }

    void times_label_kernel(const double* change, T* out) const {
        for (std::size_t r = 0; r < rows_; ++r) {
            double sum = change[r + first_];
            if (problem_.label_kernel) {
                sum = 0.0;
                for (std::size_t s = 0; s < rows_; ++s)
                    sum += change[s + first_] * problem_.label_kernel[s * rows_ + r];
            }
            out[r] = static_cast<T>(sum);
        }
    }

    // KL(p_i || softmax(s)) as in dual_terms: log(1 + sum_y p_y phi(rho_y)), rho = s - log p centred. Overwrites s.
    double divergence(std::size_t i, std::vector<double>& s) const {
        double mean = 0.0, rest = 0.0, top = 0.0;
        for (std::size_t y = 0; y < classes_; ++y) mean += mass(i)[y] * (s[y] - log_p(i)[y]);
        mean /= weight_[i];
        for (std::size_t y = 0; y < classes_; ++y) {
            const double rho = s[y] - log_p(i)[y] - mean;
            const double phi =
                std::abs(rho) < 1e-4 ? rho * rho * (0.5 + rho / 6.0 + rho * rho / 24.0) : std::expm1(rho) - rho;
            rest += mass(i)[y] / weight_[i] * phi;
            top = std::max(top, rho);
        }
        // Far from the optimum the sum overflows; its logarithm does not.
        return top > 500.0 ? softmax_row(s) - mean : std::log1p(rest);
    }

    // p_i = (1 - eps) D_i + eps prior: B_i = eps c_i (D_i - prior), where the prior is the classes' share with a bias
    // and uniform without. eps maximises the dual along this line, where its slope falls.
    void prior_start(const std::vector<double>& of_class) {
        std::vector<double> prior(classes_, 1.0 / static_cast<double>(classes_));
        for (std::size_t y = 0; y < classes_ && problem_.with_bias; ++y) {
            prior[y] = of_class[y] / total_;
        }
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t y = 0; y < classes_; ++y) mass_[i * classes_ + y] = weight_[i] * prior[y];
        product();
        double square = 0.0, mixed = 0.0;
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t y = first_; y < classes_; ++y) square += coefficient(i, y) * score(i, y);
        check_number<T>(square);
        for (const double share : prior) mixed += share * std::log(share);
        const double best = highest_on_line([&](double log_eps, double eps) {
            double slope = -eps * square;
            for (std::size_t y = 0; y < classes_; ++y)
                slope += of_class[y] * ((1.0 - prior[y]) * (std::log(1.0 - eps * (1.0 - prior[y])) - log_eps) -
                                        (mixed - prior[y] * std::log(prior[y])));
            return !(slope > 0.0);
        });
        for (T& value : scores_) value = static_cast<T>(best * static_cast<double>(value));
        for (double& value : sums_) value *= best;
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t y = 0; y < classes_; ++y)
                set_mass(i, y, weight_[i] * (y == label(i) ? 1.0 - best * (1.0 - prior[y]) : best * prior[y]));
    }

    void given_start(std::span<const double> given, double least) {
        std::vector<double> row(classes_);
        for (std::size_t i = 0; i < n_; ++i) {
            double sum = 0.0, norm = 0.0;
            for (std::size_t r = 0; r < rows_; ++r) {
                row[r + first_] = -given[i * rows_ + r];
                sum += given[i * rows_ + r];
            }
            if (first_ > 0) row[0] = sum;
            row[label(i)] += weight_[i];
            for (double& value : row) norm += value = std::max(value, weight_[i] * least);
            for (std::size_t y = 0; y < classes_; ++y) set_mass(i, y, row[y] * weight_[i] / norm);
        }
    }

    const KernelProblem<T>& problem_;
    ThreadTeam& team_;
    const std::size_t n_, classes_, rows_, first_, stride_;
    const std::vector<double> weight_;  // c_i
    const double total_;
    std::vector<double> mass_, log_p_;  // [n][n_classes]
    Aligned<T> scores_, rounded_;       // K B T [n_rows][stride]; B T [n][n_rows]
    std::vector<T> spread_;
    std::vector<double> sums_;
    double n_products_ = 0.0;
};

}  // namespace dualfield
