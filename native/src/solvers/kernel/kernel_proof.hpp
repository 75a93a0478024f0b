// What a claim about a point of a kernel machine rests on: its value in double precision, from its coefficients alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/memory.hpp"
#include "dualfield/kernels/gram.hpp"
#include "dualfield/objectives/kernel_problem.hpp"
#include "dualfield/solvers/kernel/kernel_ascent.hpp"

namespace dualfield {

// Rounding of the sums of a proof, next to the sum of the magnitudes of what is added: a few units in the last place.
constexpr double kProofRounding = 1e-15;
// So far below zero, next to the same, is more than rounding, even that of values which come from outside and were
// computed in single precision there; the second for values that were computed in it here.
constexpr double kClearly = 1e-6, kClearlyInSingle = 1e-4;

inline void require_finite(double value) {
    if (!std::isfinite(value)) throw NotPositive("Kernel values overflowed or are not numbers.");
}
// A curvature or a gap, next to the sum of the magnitudes that it was added up from.
inline void require_positive(double value, double scale, double clearly) {
    require_finite(value);
    if (value < -clearly * scale)
        throw NotPositive("The kernel is not positive semidefinite: a direction of negative curvature was found.");
}

// <B, F> with B [n][K] and scores F [K][stride].
template <class S>
double inner_product(const std::vector<double>& coefficients, const S* scores, std::size_t stride,
                     std::size_t n_labels) {
    constexpr std::size_t kBlock = 64;  // points whose coefficients stay in the nearest cache
    const std::size_t n = coefficients.size() / n_labels;
    double sum = 0.0;
    for (std::size_t first = 0; first < n; first += kBlock)
        for (std::size_t k = 0; k < n_labels; ++k)
            for (std::size_t j = first; j < std::min(n, first + kBlock); ++j)
                sum += coefficients[j * n_labels + k] * static_cast<double>(scores[k * stride + j]);
    return sum;
}

// The losses of all examples at scores F [K][stride]; own is room for the scores of one of them, [m][K].
template <class S>
double sum_of_losses(DualBlocks& blocks, const S* scores, std::size_t stride, const double* weights, double* own) {
    const std::size_t n_labels = blocks.n_labels();
    double sum = 0.0;
    for (std::size_t i = 0; i < blocks.n_examples(); ++i) {
        const auto members = blocks.members(i);
        if (members.empty()) continue;
        double* out = own;
        for (const std::int32_t point : members)
            for (std::size_t k = 0; k < n_labels; ++k)
                *out++ = static_cast<double>(scores[k * stride + static_cast<std::size_t>(point)]);
        sum += blocks.loss(i, own, weights);
    }
    require_finite(sum);
    return sum;
}

// All 2 x 2 minors of kernel values [n][stride]: none is larger than the geometric mean of its diagonal, up to what
// values from outside may have been rounded by.
inline void check_pairs(const double* gram, std::size_t stride, std::size_t n) {
    constexpr double kRounding = 1e-4;
    double top = 0.0;
    std::vector<double> roots(n);
    for (std::size_t a = 0; a < n; ++a) {
        roots[a] = std::sqrt(std::max(gram[a * stride + a], 0.0));
        top = std::max(top, roots[a] * roots[a]);
    }
    const double slack = 0.1 * kRounding * top;
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < a; ++b) {
            const double value = std::abs(gram[a * stride + b]);
            if (value <= (1.0 + kRounding) * roots[a] * roots[b] + slack) continue;
            require_finite(value);
            throw NotPositive("The kernel is not positive semidefinite: a pair of points has a negative determinant.");
        }
}

// A change of coefficients [n][K] whose curvature under K [n][stride] cannot be negative.
template <class T>
void check_curvature(const double* gram, std::size_t stride, const double* change, std::size_t n,
                     std::size_t n_labels) {
    double bend = 0.0, scale = 0.0;
    for (std::size_t k = 0; k < n_labels; ++k) {
        double sum = 0.0;
        for (std::size_t a = 0; a < n; ++a) {
            const double by = change[a * n_labels + k];
            if (by == 0.0) continue;
            double product = 0.0;
            for (std::size_t b = 0; b < n; ++b) product += gram[a * stride + b] * change[b * n_labels + k];
            bend += by * product;
            sum += std::abs(by) * std::sqrt(std::max(gram[a * stride + a], 0.0));
        }
        scale += sum * sum;
    }
    require_positive(bend, scale, sizeof(T) == 4 ? kClearlyInSingle : kClearly);
}

struct ProvenValue {
    double primal, half_square;
    double scale;  // of rounding in <B, K B>: what it was added up from, at most
    double reach;  // the same for the losses
};

class Proof {
  public:
    Proof(Gram<double>& gram, DualBlocks& blocks, ThreadTeam& team)
        : gram_(gram),
          blocks_(blocks),
          team_(team),
          stride_(padded_to_panels<double>(gram.size())),
          scores_(blocks.n_labels() * stride_, 0.0),
          roots_(gram.size()) {
        double top = 0.0;
        for (const double value : gram.diagonal()) top = std::max(top, std::abs(value));
        for (const double value : gram.diagonal()) require_positive(value, top, kClearly);
        std::size_t most = 0;
        for (std::size_t i = 0; i < blocks.n_examples(); ++i) most = std::max(most, blocks.members(i).size());
        own_.require(most * blocks.n_labels() + kLanes);
        for (std::size_t j = 0; j < roots_.size(); ++j) roots_[j] = std::sqrt(std::max(gram.diagonal()[j], 0.0));
    }

    // Of coefficients [n][K] and explicit weights.
    ProvenValue value(const std::vector<double>& coefficients, std::span<const double> weights) {
        const std::size_t n_labels = blocks_.n_labels();
        gram_.product(coefficients.data(), n_labels, scores_.data(), stride_, team_);
        // |K_ij| is at most the geometric mean of K_ii and K_jj.
        std::vector<double> sums(n_labels, 0.0);
        for (std::size_t j = 0; j < coefficients.size(); ++j)
            sums[j % n_labels] += std::abs(coefficients[j]) * roots_[j / n_labels];
        double scale = blocks_.square(weights);
        for (const double sum : sums) scale += sum * sum;
        const double square = inner_product(coefficients, scores_.data(), stride_, n_labels);
        require_positive(square, scale, kClearly);
        const double half = 0.5 * (square + blocks_.square(weights));
        const double losses = sum_of_losses(blocks_, scores_.data(), stride_, weights.data(), own_.data());
        return {half + losses, half, scale, reach(weights) + half + losses};
    }

    // F of the coefficients that were asked about last, [K][stride].
    const double* scores() const { return scores_.data(); }
    std::size_t stride() const { return stride_; }

  private:
    // A loss is the difference of two sums of scores.
    double reach(std::span<const double> weights) const {
        double own = 0.0, sum = 0.0;
        for (const double weight : weights) own = std::max(own, std::abs(weight));
        for (std::size_t i = 0; i < blocks_.n_examples(); ++i)
            for (const std::int32_t point : blocks_.members(i)) {
                double most = 0.0;
                for (std::size_t k = 0; k < blocks_.n_labels(); ++k)
                    most = std::max(most, std::abs(scores_[k * stride_ + static_cast<std::size_t>(point)]));
                sum += blocks_.weight(i) * (most + own);
            }
        return sum;
    }

    Gram<double>& gram_;
    DualBlocks& blocks_;
    ThreadTeam& team_;
    std::size_t stride_;
    Aligned<double> scores_;
    std::vector<double> roots_;  // of the diagonal
    Buffer own_;
};

}  // namespace dualfield
