// Examples of a structure whose nodes are scored by a kernel: explicit weights of shared parts, and their members.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/memory.hpp"
#include "dualfield/solvers/kernel/kernel_ascent.hpp"

namespace dualfield {

class KernelParts : public DualBlocks {
  public:
    KernelParts(const Problem& problem, double scale)
        : problem_(problem),
          truth_(problem),
          mask_(problem.scores->shared_mask()),
          n_labels_(problem.structure->parts().tables[0].width),
          n_shared_(problem.structure->parts().n_shared),
          rate_(scale * scale),
          w_(n_shared_, 0.0),
          rows_(problem.n_nodes()) {
        std::iota(rows_.begin(), rows_.end(), 0);
        augmented_.require(checked_product(problem.longest(), n_labels_) + kLanes);
    }

    std::size_t n_examples() const override { return problem_.n_examples(); }
    std::size_t n_labels() const override { return n_labels_; }
    std::span<const std::int32_t> members(std::size_t i) const override {
        // One without weight is not there.
        return {rows_.data() + problem_.first(i), problem_.weights[i] > 0.0 ? problem_.length(i) : 0};
    }
    double weight(std::size_t i) const override { return problem_.weights[i]; }
    std::span<double> weights() override { return {w_.data(), w_.size()}; }
    double square(std::span<const double> weights) const override {
        double sum = 0.0;
        for (const double weight : weights) sum += weight * weight;
        return sum / rate_;
    }

  protected:
    // Node scores with the cost of wrong labels.
    double* augment(std::size_t i, const double* scores) {
        std::copy_n(scores, problem_.length(i) * n_labels_, augmented_.data());
        if (problem_.cost) problem_.structure->add_cost(i, problem_.truth(i), problem_.cost, 1.0, augmented_.data());
        return augmented_.data();
    }

    const Problem& problem_;
    Truth truth_;
    const double* mask_;  // [n_shared]
    std::size_t n_labels_, n_shared_;
    double rate_;        // how much a score moves with a unit of mass: the square of the scale
    Aligned<double> w_;  // [n_shared] scores: the scale times the weights
    Buffer augmented_;

  private:
    std::vector<std::int32_t> rows_;
};

// At temperatures above zero.
std::unique_ptr<DualBlocks> kernel_soft_dual(const Problem& problem, double scale);
// At temperature zero: swaps of segments for chains of order 1, mixtures of labellings for every structure.
std::unique_ptr<DualBlocks> kernel_flows(const Problem& problem, double scale);
std::unique_ptr<DualBlocks> kernel_paths(const Problem& problem, double scale);

}  // namespace dualfield
