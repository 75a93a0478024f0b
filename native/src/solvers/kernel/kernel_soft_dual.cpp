// Kernel scores at temperatures above zero: exponentiated gradients, as soft_dual.hpp says.
#include <algorithm>

#include "../dual/soft_dual.hpp"
#include "dualfield/structures/chain.hpp"
#include "kernel_parts.hpp"

namespace dualfield {
namespace {

constexpr int kMostSteps = 3;  // at a visit

class KernelSoftDual final : public KernelParts {
  public:
    KernelSoftDual(const Problem& problem, double scale) : KernelParts(problem, scale), points_(problem, truth_) {
        points_.begin_at_truth();
        for (Buffer* buffer : {&moved_, &answer_}) buffer->require(checked_product(problem.longest(), n_labels_));
    }

    bool wants_mean() const override { return false; }

    double visit(std::size_t i, double* scores, const double* gram, double* change) override {
        double gain = 0.0;
        for (int step = 0; step < kMostSteps; ++step) {
            const double gained = this->step(i, scores, gram, change);
            gain += gained;
            if (!(gained > 0.1 * gain)) break;
        }
        return gain;
    }

    // c_i T KL(mu_i || p_i).
    double gap(std::size_t i, const double* scores) override {
        const double maximum = points_.soft_maximum(i, {augment(i, scores), w_.data()});
        double mean = 0.0;
        const auto mu = points_.mu(i);
        for (std::size_t j = 0; j < size(i); ++j)
            if (mu.own[j] > 0.0) mean += mu.own[j] * scores[j];
        for (std::size_t c = 0; c < n_shared_; ++c)
            if (mu.shared[c] > 0.0) mean += mu.shared[c] * w_[c];
        return std::max(problem_.weights[i] * (maximum - mean - points_.value(i)), 0.0);
    }

    double loss(std::size_t i, const double* scores, const double* weights) override {
        const double* augmented = augment(i, scores);
        const double maximum = points_.soft_maximum(i, {augmented, weights});
        // The truth costs nothing.
        const ScoreView view{.own = {augmented}, .shared = weights};
        return problem_.weights[i] * (maximum - problem_.structure->Structure::score_parts(i, view, truth_.parts(i)));
    }

    double settle(std::size_t i, double* out) override {
        if (!is_moved_) {
            // At the truth, which no finite scores give.
            std::fill_n(out, size(i), 0.0);
            return 0.0;
        }
        points_.settle(i);
        const double weight = problem_.weights[i];
        for (std::size_t j = 0; j < size(i); ++j) out[j] = -weight * points_.moved().own[j];
        add_weights(i);
        return weight * points_.value(i);
    }

    bool can_begin() const override { return true; }
    void begin_at(std::size_t i, const double* scores) override {
        points_.begin_at(i, {augment(i, scores), w_.data()});
        is_moved_ = true;
    }

  private:
    std::size_t size(std::size_t i) const { return problem_.length(i) * n_labels_; }

    double step(std::size_t i, double* scores, const double* gram, double* change) {
        const double weight = problem_.weights[i];
        const auto growth = [&] { return grow(problem_.length(i), scores, gram, weight) + growth_of_weights(weight); };
        // A step that is too long has moved nothing yet.
        const auto gain = points_.ascend(i, {augment(i, scores), w_.data()}, growth, [] {});
        if (!gain) return 0.0;
        is_moved_ = true;
        add_weights(i);
        for (std::size_t j = 0; j < size(i); ++j) {
            change[j] += moved_.data()[j];
            scores[j] += answer_.data()[j];
        }
        return *gain;
    }

    // The change of the coefficients and what it does to the own scores, into moved_ and answer_; returns how much
    // 1/2 <B, K B> grows.
    double grow(std::size_t length, const double* scores, const double* gram, double weight) {
        const std::size_t size = length * n_labels_;
        double *moved = moved_.data(), *answer = answer_.data();
        for (std::size_t j = 0; j < size; ++j) moved[j] = -weight * points_.moved().own[j];
        std::fill_n(answer, size, 0.0);
        for (std::size_t t = 0; t < length; ++t)
            for (std::size_t u = 0; u < length; ++u) {
                const double by = gram[t * length + u];
                const double* from = moved + t * n_labels_;
                double* to = answer + u * n_labels_;
                for (std::size_t k = 0; k < n_labels_; ++k) to[k] += by * from[k];
            }
        double grown = 0.0;
        for (std::size_t j = 0; j < size; ++j) grown += moved[j] * (scores[j] + 0.5 * answer[j]);
        return grown;
    }
    // The same for the penalty of the weights.
    double growth_of_weights(double weight) {
        double grown = 0.0;
        for (std::size_t c = 0; c < n_shared_; ++c) {
            const double mass = -weight * mask_[c] * points_.moved().shared[c];
            grown += mass * (w_[c] + 0.5 * rate_ * mass);
        }
        return grown;
    }
    void add_weights(std::size_t i) {
        const double weight = rate_ * problem_.weights[i];
        for (std::size_t c = 0; c < n_shared_; ++c) w_[c] -= weight * mask_[c] * points_.moved().shared[c];
    }

    SoftDual<double> points_;
    Buffer moved_, answer_;
    bool is_moved_ = false;
};

}  // namespace

std::unique_ptr<DualBlocks> kernel_soft_dual(const Problem& problem, double scale) {
    return std::make_unique<KernelSoftDual>(problem, scale);
}

std::unique_ptr<DualBlocks> kernel_blocks(const Problem& problem, double scale) {
    if (problem.temperature > 0.0) return kernel_soft_dual(problem, scale);
    const ChainStructure* chain = problem.structure->chain();
    return chain && chain->topology().order() == 1 ? kernel_flows(problem, scale) : kernel_paths(problem, scale);
}

}  // namespace dualfield
