// A point of the dual of binary kernel logistic regression: probabilities, scores, duality gap.
//
// p_i, the probability of class 1 at point i, is kept as the masses c_i p_i and c_i (1 - p_i) and as the logit, so that
// both ends keep their relative precision. Coefficients are B_i = c_i (D_i - p_i), scores F = K B; by column only
// pull_i = F_i - logit p_i is kept (H_i in Keerthi et al., 3.2). The duality gap for any bias b,
//
//     sum_i c_i KL(p_i || sigmoid(F_i + b)) = sum_i c_i KL(p_i || sigmoid(logit p_i + (pull_i + b))),
//
// is O(n) and no difference of large numbers; with a bias it holds for feasible points, sum_i B_i = 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "curvature_check.hpp"
#include "dual_start.hpp"
#include "dualfield/objectives/kernel_problem.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

// KL(p || sigmoid(logit p + d)) with the change of p and its derivative, from the smaller of p and q = 1 - p.
inline SmoGapSums divergence(double p, double q, double d) {
    const double s = std::min(p, q), x = p <= q ? d : -d, sign = p <= q ? 1.0 : -1.0;
    if (x > 700.0) return {.gap = std::log(s) + (1.0 - s) * x, .slope = sign * (1.0 - s), .curvature = 0.0};
    const double e = std::expm1(x), total = 1.0 + s * e, v = p * q;
    double kl = std::log1p(s * e) - s * x;
    if (std::abs(x) < 0.02) {
        // The closed form would cancel: cumulants of the Bernoulli distribution.
        const double skew = 1.0 - 2.0 * s, third = skew / 6.0, fourth = (1.0 - 6.0 * v) / 24.0;
        kl = v * x * x * (0.5 + x * (third + x * (fourth + x * skew * (1.0 - 12.0 * v) / 120.0)));
    }
    return {.gap = kl, .slope = sign * v * e / total, .curvature = v * (1.0 + e) / (total * total)};
}

template <class T>
class BinaryDual {
  public:
    // Keerthi et al., section 5: p is kept this far from 0 and 1.
    static constexpr double kPaperFloor = 1e3 * std::numeric_limits<double>::epsilon();

    // floor: a point whose p or 1 - p is at most this is held, it does not go further. with_bends: keep K_ii and the
    // curvature of the entropy as well.
    BinaryDual(const KernelProblem<T>& problem, double floor, bool with_bends, ThreadTeam& team)
        : problem_(problem),
          team_(team),
          n_(problem.size()),
          top_diagonal_(checked_diagonal(problem.gram->diagonal(), problem.noise)),
          floor_(floor),
          weight_(problem.weights.begin(), problem.weights.end()),
          mass_(std::accumulate(weight_.begin(), weight_.end(), 0.0)),
          p_(n_),
          q_(n_),
          logit_(n_),
          entropy_(n_),
          pull_(n_),
          p_share_(n_),
          q_share_(n_),
          held_(n_, T(0)),
          bend_(with_bends ? n_ : 0) {}

    std::size_t size() const { return n_; }
    double mass() const { return mass_; }  // sum_i c_i
    double p(std::size_t i) const { return p_[i]; }
    double q(std::size_t i) const { return q_[i]; }
    double least(std::size_t i) const { return weight_[i] * floor_; }
    double score(std::size_t i) const { return static_cast<double>(pull_[i]) + logit_[i]; }
    double pull(std::size_t i) const { return static_cast<double>(pull_[i]); }
    double diagonal(std::size_t i) const { return static_cast<double>(problem_.gram->diagonal()[i]); }
    double top_diagonal() const { return top_diagonal_; }
    T* pulls() { return pull_.data(); }
    const T* bends() const { return bend_.data(); }
    const T* held() const { return n_held_ > 0 ? held_.data() : nullptr; }

    double bias() const { return bias_; }
    double gap() const { return gap_; }
    double dual() const { return dual_; }
    double n_products() const { return n_products_; }

    // The point that a solver starts from, feasible, and its scores.
    void begin(const KernelStart& start) {
        const std::vector<double> of_class = class_weights(problem_);
        if (problem_.with_bias) require_every_class(of_class);
        double scale = 1.0;
        if (start.coefficients.empty()) {
            scale = prior_start(of_class);
        } else {
            given_start(start.coefficients);
            product();
        }
        for (std::size_t i = 0; i < n_; ++i) {
            settle(i);
            pull_[i] = static_cast<T>(scale * static_cast<double>(pull_[i]) - logit_[i]);
        }
        if (problem_.with_bias && !start.bias.empty()) bias_ = start.bias[0];
        measure();
    }

    // New masses at a point. Its own pull follows; the scores of all points are the caller's business.
    void replace(std::size_t i, double p, double q) {
        const double before = logit_[i];
        p_[i] = p;
        q_[i] = q;
        settle(i);
        pull_[i] = static_cast<T>(pull(i) - (logit_[i] - before));
    }

    // Scores anew from the coefficients.
    void refresh() {
        product();
        for (std::size_t i = 0; i < n_; ++i) pull_[i] = static_cast<T>(pull(i) - logit_[i]);
    }

    // Dual value, best bias and gap, in double precision throughout.
    void measure() {
        measure_dual();
        const auto [lowest, highest] = std::minmax_element(pull_.begin(), pull_.end());
        double low = -static_cast<double>(*highest), high = -static_cast<double>(*lowest);
        if (problem_.with_bias) bias_ = std::clamp(bias_, low, high);
        // Newton's method along the bias, bracketed: the slope rises with it.
        for (int round = 0; round < 100; ++round) {
            SmoGapSums total;
            for (std::size_t i = 0; i < n_; ++i) {
                const SmoGapSums here = divergence(p_[i] / weight_[i], q_[i] / weight_[i], pull(i) + bias_);
                total.gap += weight_[i] * here.gap;
                total.slope += weight_[i] * here.slope;
                total.curvature += weight_[i] * here.curvature;
            }
            check_number<T>(total.gap);
            gap_ = total.gap;
            if (!problem_.with_bias || std::abs(total.slope) <= 1e-14 * mass_) return;
            (total.slope > 0.0 ? high : low) = bias_;
            double next = bias_ - total.slope / total.curvature;
            if (!(next > low && next < high)) next = 0.5 * (low + high);
            if (next == bias_ || !(next > low && next < high)) return;
            bias_ = next;
        }
    }

    // The same by the vector code, within its precision. The bias makes one step to its best value, more only if they
    // could bring the relative gap below the tolerance.
    void estimate(double tolerance) {
        measure_dual();
        for (int round = 0; round < 10; ++round) {
            const SmoGap<T> in{.pull = pull_.data(),
                               .p = p_share_.data(),
                               .q = q_share_.data(),
                               .weights = problem_.weights.data(),
                               .bias = static_cast<T>(bias_)};
            SmoGapSums sums;
            routines().kernel<T>().smo_gap(in, 0, n_, sums);
            check_number<T>(sums.gap);
            gap_ = sums.gap;
            if (!problem_.with_bias || !(sums.curvature > 0.0)) return;
            const double step = std::clamp(sums.slope / sums.curvature, -2.0, 2.0), saving = 0.5 * sums.slope * step;
            bias_ -= step;
            if (gap_ - saving > 2.0 * tolerance * dual_ || saving < 0.01 * gap_) return;
        }
    }

    // The part of the gap that belongs to points at the ends of the box.
    double held_gap() const {
        double total = 0.0;
        for (std::size_t i = 0; i < n_ && n_held_ > 0; ++i)
            if (held_[i] != T(0))
                total += weight_[i] * divergence(p_[i] / weight_[i], q_[i] / weight_[i], pull(i) + bias_).gap;
        return total;
    }

    // A wider box; false if no point would notice.
    bool widen() {
        if (n_held_ == 0 || floor_ < 1e-100) return false;
        floor_ *= 0.01;
        for (std::size_t i = 0; i < n_; ++i) settle(i);
        return true;
    }

    std::vector<double> coefficients() const {
        std::vector<double> result(n_);
        for (std::size_t i = 0; i < n_; ++i) result[i] = coefficient(i);
        if (!problem_.with_bias) return result;
        // Steps keep the sum at zero to rounding; the point with most room takes what rounding left.
        std::size_t widest = 0;
        for (std::size_t i = 1; i < n_; ++i)
            if (std::min(p_[i], q_[i]) > std::min(p_[widest], q_[widest])) widest = i;
        result[widest] -= std::accumulate(result.begin(), result.end(), 0.0);
        return result;
    }

  private:
    double coefficient(std::size_t i) const { return problem_.labels[i] == 1 ? q_[i] : -p_[i]; }

    // Takes the smaller mass of a point as it is and derives everything else from it.
    void settle(std::size_t i) {
        const double c = weight_[i], small = std::min(p_[i], q_[i]);
        const bool up = p_[i] > q_[i];
        (up ? p_ : q_)[i] = c - small;
        const double log_small = std::log(small / c), log_large = std::log1p(-small / c);
        logit_[i] = up ? log_large - log_small : log_small - log_large;
        entropy_[i] = -(small * log_small + (c - small) * log_large);
        p_share_[i] = static_cast<T>(p_[i] / c);
        q_share_[i] = static_cast<T>(q_[i] / c);
        const bool at_end = small <= least(i) * (1.0 + 1e-9);
        n_held_ -= held_[i] != T(0);
        n_held_ += at_end;
        held_[i] = !at_end ? T(0) : up ? T(1) : T(-1);
        if (bend_.size() > 0) bend_[i] = static_cast<T>(std::min(diagonal(i) + c / (p_[i] * q_[i]), 1e30));
    }

    // pull = K B, for now without the logits.
    void product() {
        Aligned<T> rounded(n_);
        for (std::size_t i = 0; i < n_; ++i) rounded[i] = static_cast<T>(coefficient(i));
        problem_.gram->product(rounded.data(), 1, pull_.data(), n_, team_);
        n_products_ += 1.0;
    }

    // |B_i| = eps c_i (mass of the other class) / (mass): feasible, inside the box however small a class is and, with
    // eps = 1, optimal for K = 0. Keerthi's C / m_1, C / m_2 is at the end of the box for a class of one point. eps
    // maximises the dual along this line. Leaves K B / eps in pull; returns eps.
    double prior_start(const std::vector<double>& of_class) {
        const double share[2] = {problem_.with_bias ? of_class[1] / mass_ : 0.5,
                                 problem_.with_bias ? of_class[0] / mass_ : 0.5};
        set_shares(share, 1.0);
        product();
        double square = 0.0;
        for (std::size_t i = 0; i < n_; ++i) square += coefficient(i) * pull(i);
        check_number<T>(square);
        // The slope of minus the dual rises from minus infinity.
        const double best = highest_on_line([&](double, double eps) {
            double slope = eps * square;
            for (std::size_t k = 0; k < 2; ++k)
                slope += of_class[k] * share[k] * std::log(eps * share[k] / (1.0 - eps * share[k]));
            return slope > 0.0;
        });
        set_shares(share, best);
        return best;
    }
    void set_shares(const double (&share)[2], double eps) {
        for (std::size_t i = 0; i < n_; ++i) {
            const bool one = problem_.labels[i] == 1;
            const double a = eps * weight_[i] * share[one];
            (one ? q_ : p_)[i] = a;
            (one ? p_ : q_)[i] = weight_[i] - a;
        }
    }

    // Given coefficients, clipped; of the two classes, the one with too much is scaled down.
    void given_start(std::span<const double> given) {
        double sums[2] = {0.0, 0.0};
        for (std::size_t i = 0; i < n_; ++i) {
            const bool one = problem_.labels[i] == 1;
            const double least = weight_[i] * kPaperFloor;
            const double a = std::clamp(one ? given[i] : -given[i], least, weight_[i] - least);
            (one ? q_ : p_)[i] = a;
            sums[one] += a;
        }
        for (std::size_t i = 0; i < n_; ++i) {
            const bool one = problem_.labels[i] == 1;
            double& a = (one ? q_ : p_)[i];
            if (problem_.with_bias && sums[one] > sums[!one]) a *= sums[!one] / sums[one];
            (one ? p_ : q_)[i] = weight_[i] - a;
        }
    }

    void measure_dual() {
        constexpr double kRounding = 4.0 * std::numeric_limits<T>::epsilon();
        double entropy = 0.0, square = 0.0, unsure = 0.0;
        for (std::size_t i = 0; i < n_; ++i) {
            entropy += entropy_[i];
            square += coefficient(i) * score(i);
            unsure += kRounding * std::abs(coefficient(i) * logit_[i]);  // the score is a difference from the logit
        }
        const auto size = [&](std::size_t i, std::size_t) { return std::abs(coefficient(i)); };
        dual_ = entropy - 0.5 * checked_square(problem_, square, size, unsure);
    }

    const KernelProblem<T>& problem_;
    ThreadTeam& team_;
    const std::size_t n_;
    const double top_diagonal_;
    double floor_;
    const std::vector<double> weight_;
    const double mass_;
    std::vector<double> p_, q_, logit_, entropy_;        // c_i p_i, c_i (1 - p_i), logit p_i, c_i times the entropy
    Aligned<T> pull_, p_share_, q_share_, held_, bend_;  // see smo_rows.hpp
    std::size_t n_held_ = 0;
    double bias_ = 0.0, gap_ = 0.0, dual_ = 0.0, n_products_ = 0.0;
};

}  // namespace dualfield
