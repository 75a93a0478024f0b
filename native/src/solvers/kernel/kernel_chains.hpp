// What chains with kernel scores share at every temperature: explicit weights of cliques and ends, and their members.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "dualfield/core/memory.hpp"
#include "dualfield/solvers/kernel/kernel_ascent.hpp"

namespace dualfield {

class KernelChains : public DualBlocks {
  public:
    KernelChains(const ChainModel& model, const ChainData& data, double scale)
        : model_(model),
          data_(data),
          truth_(model, data),
          n_labels_(model.topology->n_labels()),
          rate_(scale * scale),
          w_(model.size(), 0.0),
          rows_(data.n_nodes()) {
        std::iota(rows_.begin(), rows_.end(), 0);
        std::size_t longest = 0;
        for (std::size_t i = 0; i < data.n_examples(); ++i) longest = std::max(longest, data.length(i));
        augmented_.require(checked_product(longest, n_labels_) + kLanes);
    }

    std::size_t n_examples() const override { return data_.n_examples(); }
    std::size_t n_labels() const override { return n_labels_; }
    std::span<const std::int32_t> members(std::size_t i) const override {
        // One without weight is not there.
        return {rows_.data() + data_.first(i), data_.weights[i] > 0.0 ? data_.length(i) : 0};
    }
    double weight(std::size_t i) const override { return data_.weights[i]; }
    std::span<double> weights() override { return {w_.data(), w_.size()}; }
    double square(std::span<const double> weights) const override {
        double sum = 0.0;
        for (const double weight : weights) sum += weight * weight;
        return sum / rate_;
    }

  protected:
    // Node scores with the cost of wrong labels and the weights of the ends.
    const double* augment(std::size_t i, const double* scores, const double* weights) {
        const std::size_t length = data_.length(i), first = data_.first(i);
        double* out = augmented_.data();
        std::copy_n(scores, length * n_labels_, out);
        for (std::size_t t = 0; data_.cost && t < length; ++t)
            for (std::size_t k = 0; k < n_labels_; ++k)
                out[t * n_labels_ + k] += data_.cost[label(first + t) * n_labels_ + k];
        for (std::size_t k = 0; model_.with_ends && k < n_labels_; ++k) {
            out[k] += weights[model_.start_begin() + k];
            out[(length - 1) * n_labels_ + k] += weights[model_.stop_begin() + k];
        }
        return out;
    }
    std::size_t label(std::size_t row) const { return static_cast<std::size_t>(data_.labels[row]); }
    const double* cliques(const double* weights) const { return weights + model_.clique_begin(); }

    // The score of the truth at augmented scores: the truth costs nothing.
    double true_score(std::size_t i, const double* augmented, const double* weights) const {
        double total = 0.0;
        for (std::size_t t = 0; t < data_.length(i); ++t) total += augmented[t * n_labels_ + label(data_.first(i) + t)];
        for (std::int64_t e = truth_.first_edge(i); e < truth_.first_edge(i + 1); ++e)
            total += cliques(weights)[truth_.clique(e)];
        return total;
    }

    const ChainModel& model_;
    const ChainData& data_;
    ChainTruth truth_;
    std::size_t n_labels_;
    double rate_;        // how much a score moves with a unit of mass: the square of the scale
    Aligned<double> w_;  // scores: the scale times the weights
    Buffer augmented_;

  private:
    std::vector<std::int32_t> rows_;
};

}  // namespace dualfield
