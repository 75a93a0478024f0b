// Chains with kernel scores at temperatures above zero: exponentiated gradients, as soft_chains.hpp says.
#include <algorithm>

#include "../dual/soft_chains.hpp"
#include "kernel_chains.hpp"
#include "kernel_flows.hpp"

namespace dualfield {
namespace {

constexpr double kGrow = 1.1, kShrink = 0.5;
constexpr int kMostTries = 12, kMostSteps = 3;

class KernelSoftChains final : public KernelChains {
  public:
    KernelSoftChains(const ChainModel& model, const ChainData& data, double scale)
        : KernelChains(model, data, scale), points_(model, data, truth_) {
        points_.begin_at_truth();
        std::size_t longest = 0;
        for (std::size_t i = 0; i < data.n_examples(); ++i) longest = std::max(longest, data.length(i));
        for (Buffer* buffer : {&moved_, &answer_}) buffer->require(longest * n_labels_);
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
        const double* augmented = augment(i, scores, w_.data());
        const double maximum = points_.soft_maximum(i, augmented, cliques(w_.data()));
        double mean = 0.0;
        const double *mu = points_.mu(i), *clique_mu = points_.clique_mu(i);
        for (std::size_t j = 0; j < data_.length(i) * n_labels_; ++j)
            if (mu[j] > 0.0) mean += mu[j] * (augmented[j] - own_cost(i, j));
        for (std::size_t c = 0; c < model_.topology->n_cliques(); ++c)
            if (clique_mu[c] > 0.0) mean += clique_mu[c] * cliques(w_.data())[c];
        return std::max(data_.weights[i] * (maximum - mean - points_.value(i)), 0.0);
    }

    double loss(std::size_t i, const double* scores, const double* weights) override {
        const double* augmented = augment(i, scores, weights);
        const double maximum = points_.soft_maximum(i, augmented, cliques(weights));
        return data_.weights[i] * (maximum - true_score(i, augmented, weights));
    }

    double settle(std::size_t i, double* out) override {
        if (!is_moved_) {
            // At the truth, which no finite scores give.
            std::fill_n(out, data_.length(i) * n_labels_, 0.0);
            return 0.0;
        }
        points_.settle(i);
        const double weight = data_.weights[i];
        for (std::size_t j = 0; j < data_.length(i) * n_labels_; ++j) out[j] = -weight * points_.moved()[j];
        add_weights(i, points_.moved(), points_.clique_moved());
        return weight * points_.value(i);
    }

    bool can_begin() const override { return true; }
    void begin_at(std::size_t i, const double* scores) override {
        points_.begin_at(i, augment(i, scores, w_.data()), cliques(w_.data()));
        is_moved_ = true;
    }

  private:
    double own_cost(std::size_t i, std::size_t j) const {
        return data_.cost ? data_.cost[label(data_.first(i) + j / n_labels_) * n_labels_ + j % n_labels_] : 0.0;
    }

    double step(std::size_t i, double* scores, const double* gram, double* change) {
        const std::size_t length = data_.length(i), size = length * n_labels_;
        const double weight = data_.weights[i];
        const double* augmented = augment(i, scores, w_.data());
        double eta = points_.eta(i);
        for (int tries = 0; tries < kMostTries; ++tries, eta *= kShrink) {
            const double value = points_.propose(i, augmented, cliques(w_.data()), eta);
            const double grown = grow(length, scores, gram, weight) + growth_of_weights(i, weight);
            const double gain = weight * (value - points_.value(i)) - grown;
            if (!(gain >= 0.0)) continue;
            points_.accept(i, value);
            is_moved_ = true;
            points_.eta(i) = tries == 0 ? std::min(1.0, eta * kGrow) : eta;
            add_weights(i, points_.moved(), points_.clique_moved());
            for (std::size_t j = 0; j < size; ++j) {
                change[j] += moved_.data()[j];
                scores[j] += answer_.data()[j];
            }
            return gain;
        }
        points_.eta(i) = eta;
        return 0.0;
    }

    // The change of the coefficients and what it does to the own scores, into moved_ and answer_; returns how much
    // 1/2 <B, K B> grows.
    double grow(std::size_t length, const double* scores, const double* gram, double weight) {
        const std::size_t size = length * n_labels_;
        double *moved = moved_.data(), *answer = answer_.data();
        for (std::size_t j = 0; j < size; ++j) moved[j] = -weight * points_.moved()[j];
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
    double growth_of_weights(std::size_t i, double weight) const {
        double grown = 0.0;
        const auto grow = [&](std::size_t place, double mass) { grown += mass * (w_[place] + 0.5 * rate_ * mass); };
        for (std::size_t c = 0; c < model_.topology->n_cliques(); ++c)
            grow(model_.clique_begin() + c, -weight * model_.clique_mask[c] * points_.clique_moved()[c]);
        const double *first = points_.moved(), *last = first + (data_.length(i) - 1) * n_labels_;
        for (std::size_t k = 0; model_.with_ends && k < n_labels_; ++k) {
            grow(model_.start_begin() + k, -weight * first[k]);
            grow(model_.stop_begin() + k, -weight * last[k]);
        }
        return grown;
    }
    void add_weights(std::size_t i, const double* moved, const double* clique_moved) {
        const double weight = rate_ * data_.weights[i];
        for (std::size_t c = 0; c < model_.topology->n_cliques(); ++c)
            w_[model_.clique_begin() + c] -= weight * model_.clique_mask[c] * clique_moved[c];
        const double* last = moved + (data_.length(i) - 1) * n_labels_;
        for (std::size_t k = 0; model_.with_ends && k < n_labels_; ++k) {
            w_[model_.start_begin() + k] -= weight * moved[k];
            w_[model_.stop_begin() + k] -= weight * last[k];
        }
    }

    SoftChains<double> points_;
    Buffer moved_, answer_;
    bool is_moved_ = false;
};

}  // namespace

std::unique_ptr<DualBlocks> chain_blocks(const ChainModel& model, const ChainData& data, double scale) {
    if (data.temperature > 0.0) return std::make_unique<KernelSoftChains>(model, data, scale);
    return kernel_flows(model, data, scale);
}

}  // namespace dualfield
