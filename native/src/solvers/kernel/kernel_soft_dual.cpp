// Kernel scores at temperatures above zero: exponentiated gradients, as soft_dual.hpp says.
#include <algorithm>

#include "../dual/soft_dual.hpp"
#include "dualfield/structures/chains/chain.hpp"
#include "kernel_parts.hpp"

namespace dualfield {
namespace {

constexpr int kMostSteps = 3;  // at a visit

class KernelSoftDual final : public KernelParts {
  public:
    KernelSoftDual(const Problem& problem, double scale, bool with_nodes)
        : KernelParts(problem, scale, with_nodes), memory_(problem), points_(problem, truth_, memory_.state()) {
        points_.begin_at_truth();
        std::size_t most = 0;
        for (std::size_t i = 0; i < problem.n_examples(); ++i) most = std::max(most, n_scores(i));
        for (Buffer* buffer : {&moved_, &answer_}) buffer->require(most + kLanes);
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
        const double* own = mu.own + unscored(i);
        for (std::size_t j = 0; j < n_scores(i); ++j)
            if (own[j] > 0.0) mean += own[j] * scores[j];
        for (std::size_t c = 0; c < n_shared_; ++c)
            if (mu.shared[c] > 0.0) mean += mu.shared[c] * w_[c];
        return std::max(problem_.weights[i] * (maximum - mean - points_.value(i)), 0.0);
    }

    double loss(std::size_t i, const double* scores, const double* weights) override {
        const double* augmented = augment(i, scores);
        const double maximum = points_.soft_maximum(i, {augmented, weights});
        // The truth costs nothing.
        const ScoreView view = view_of_one(layout_, i, {augmented, weights});
        return problem_.weights[i] * (maximum - problem_.structure->Structure::score_parts(i, view, truth_.parts(i)));
    }

    double settle(std::size_t i, double* out) override {
        if (!is_moved_) {
            // At the truth, which no finite scores give.
            std::fill_n(out, n_scores(i), 0.0);
            return 0.0;
        }
        points_.settle(i);
        const double weight = problem_.weights[i];
        take_moved(i, weight, out);
        add_weights(i);
        return weight * points_.value(i);
    }

    bool can_begin() const override { return true; }
    void begin_at(std::size_t i, const double* scores) override {
        points_.begin_at(i, {augment(i, scores), w_.data()});
        is_moved_ = true;
    }

  private:
    // What the last step adds to the coefficients.
    void take_moved(std::size_t i, double weight, double* out) {
        const double* moved = points_.moved().own + unscored(i);
        for (std::size_t j = 0; j < n_scores(i); ++j) out[j] = -weight * moved[j];
    }

    double step(std::size_t i, double* scores, const double* gram, double* change) {
        const double weight = problem_.weights[i];
        const auto growth = [&] { return grow(i, scores, gram, weight) + growth_of_weights(weight); };
        // A step that is too long has moved nothing yet.
        const auto gain = points_.ascend(i, {augment(i, scores), w_.data()}, growth, [] {});
        if (!gain) return 0.0;
        is_moved_ = true;
        add_weights(i);
        for (std::size_t j = 0; j < n_scores(i); ++j) {
            change[j] += moved_.data()[j];
            scores[j] += answer_.data()[j];
        }
        return *gain;
    }

    // The change of the coefficients and what it does to the own scores, into moved_ and answer_; returns how much
    // 1/2 <B, K B> grows.
    double grow(std::size_t i, const double* scores, const double* gram, double weight) {
        const std::size_t size = n_scores(i);
        double *moved = moved_.data(), *answer = answer_.data();
        take_moved(i, weight, moved);
        std::fill_n(answer, size, 0.0);
        for (std::size_t g = 0; g < n_tables(); ++g) {
            const std::size_t m = members(g, i).size(), width = this->width(g);
            for (std::size_t t = 0; t < m; ++t)
                for (std::size_t u = 0; u < m; ++u) {
                    const double by = gram[t * m + u];
                    const double* from = moved + t * width;
                    double* to = answer + u * width;
                    for (std::size_t k = 0; k < width; ++k) to[k] += by * from[k];
                }
            moved += m * width;
            answer += m * width;
            gram += m * m;
        }
        double grown = 0.0;
        for (std::size_t j = 0; j < size; ++j) grown += moved_.data()[j] * (scores[j] + 0.5 * answer_.data()[j]);
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

    SoftMemory<double> memory_;
    SoftDual<double> points_;
    Buffer moved_, answer_;
    bool is_moved_ = false;
};

}  // namespace

std::unique_ptr<DualBlocks> kernel_soft_dual(const Problem& problem, double scale, bool with_nodes) {
    return std::make_unique<KernelSoftDual>(problem, scale, with_nodes);
}

std::unique_ptr<DualBlocks> kernel_blocks(const Problem& problem, double scale, bool with_nodes) {
    if (problem.temperature > 0.0) return kernel_soft_dual(problem, scale, with_nodes);
    const ChainStructure* chain = problem.structure->chain();
    const bool has_flows = chain && chain->topology().order() == 1;
    return has_flows ? kernel_flows(problem, scale, with_nodes) : kernel_paths(problem, scale, with_nodes);
}

}  // namespace dualfield
