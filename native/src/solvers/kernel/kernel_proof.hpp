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

// Scores F of all points of a table, by what they score: [width][stride].
template <class S>
struct ScoresOfPoints {
    const S* values;
    std::size_t stride;

    double at(std::size_t k, std::int32_t point) const {
        return static_cast<double>(values[k * stride + static_cast<std::size_t>(point)]);
    }
};

// <B, F> with B [n][width].
template <class S>
double inner_product(const std::vector<double>& coefficients, ScoresOfPoints<S> scores, std::size_t width) {
    constexpr std::size_t kBlock = 64;  // points whose coefficients stay in the nearest cache
    const std::size_t n = coefficients.size() / width;
    double sum = 0.0;
    for (std::size_t first = 0; first < n; first += kBlock)
        for (std::size_t k = 0; k < width; ++k)
            for (std::size_t j = first; j < std::min(n, first + kBlock); ++j)
                sum += coefficients[j * width + k] * static_cast<double>(scores.values[k * scores.stride + j]);
    return sum;
}

// The scores of the members of an example, table by table, [m][width] each.
template <class S>
void gather_scores(const DualBlocks& blocks, std::size_t i, std::span<const ScoresOfPoints<S>> tables, double* out) {
    for (std::size_t g = 0; g < tables.size(); ++g)
        for (const std::int32_t point : blocks.members(g, i))
            for (std::size_t k = 0; k < blocks.width(g); ++k) *out++ = blocks.scale(g) * tables[g].at(k, point);
}

// The losses of all examples; own is room for the scores of one of them.
template <class S>
double sum_of_losses(DualBlocks& blocks, std::span<const ScoresOfPoints<S>> tables, const double* weights,
                     double* own) {
    double sum = 0.0;
    for (std::size_t i = 0; i < blocks.n_examples(); ++i) {
        if (!blocks.is_there(i)) continue;
        gather_scores(blocks, i, tables, own);
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
    Proof(std::vector<Gram<double>*> grams, DualBlocks& blocks, ThreadTeam& team)
        : blocks_(blocks), team_(team), tables_(grams.size()) {
        for (std::size_t g = 0; g < grams.size(); ++g) {
            Table& table = tables_[g];
            table.gram = grams[g];
            table.stride = padded_to_panels<double>(table.gram->size());
            table.scores = Aligned<double>(checked_product(blocks.width(g), table.stride), 0.0);
            double top = 0.0;
            for (const double value : table.gram->diagonal()) top = std::max(top, std::abs(value));
            for (const double value : table.gram->diagonal()) {
                require_positive(value, top, kClearly);
                table.roots.push_back(std::sqrt(std::max(value, 0.0)));
            }
        }
        std::size_t most = 0;
        for (std::size_t i = 0; i < blocks.n_examples(); ++i) most = std::max(most, blocks.n_scores(i));
        own_.require(most + kLanes);
    }

    // Of coefficients and explicit weights.
    ProvenValue value(const Coefficients& coefficients, std::span<const double> weights) {
        double scale = blocks_.square(weights), square = 0.0;
        std::vector<ScoresOfPoints<double>> scores;
        for (std::size_t g = 0; g < tables_.size(); ++g) {
            Table& table = tables_[g];
            const std::size_t width = blocks_.width(g);
            table.gram->product(coefficients[g].data(), width, table.scores.data(), table.stride, team_);
            // |K_ij| is at most the geometric mean of K_ii and K_jj.
            std::vector<double> sums(width, 0.0);
            for (std::size_t j = 0; j < coefficients[g].size(); ++j)
                sums[j % width] += std::abs(coefficients[g][j]) * table.roots[j / width];
            for (const double sum : sums) scale += sum * sum;
            scores.push_back(this->scores(g));
            square += inner_product(coefficients[g], scores[g], width);
        }
        require_positive(square, scale, kClearly);
        const double half = 0.5 * (square + blocks_.square(weights));
        const double losses = sum_of_losses<double>(blocks_, scores, weights.data(), own_.data());
        return {half + losses, half, scale, reach(weights) + half + losses};
    }

    // F of the coefficients that were asked about last.
    ScoresOfPoints<double> scores(std::size_t g) const { return {tables_[g].scores.data(), tables_[g].stride}; }

  private:
    struct Table {
        Gram<double>* gram;
        std::size_t stride;
        Aligned<double> scores;     // [width][stride]
        std::vector<double> roots;  // of the diagonal
    };

    // A loss is the difference of two sums of scores.
    double reach(std::span<const double> weights) const {
        double own = 0.0, sum = 0.0;
        for (const double weight : weights) own = std::max(own, std::abs(weight));
        for (std::size_t i = 0; i < blocks_.n_examples(); ++i)
            for (std::size_t g = 0; g < tables_.size(); ++g)
                for (const std::int32_t point : blocks_.members(g, i)) {
                    double most = 0.0;
                    for (std::size_t k = 0; k < blocks_.width(g); ++k)
                        most = std::max(most, std::abs(scores(g).at(k, point)));
                    sum += blocks_.weight(i) * (blocks_.scale(g) * most + own);
                }
        return sum;
    }

    DualBlocks& blocks_;
    ThreadTeam& team_;
    std::vector<Table> tables_;
    Buffer own_;
};

}  // namespace dualfield
