// Examples of a structure whose own parts are scored by kernels: explicit weights of shared parts, and their members.
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
    KernelParts(const Problem& problem, double scale, bool with_nodes)
        : problem_(problem),
          truth_(problem),
          layout_(problem.structure->parts()),
          mask_(problem.scores->shared_mask()),
          n_labels_(layout_.tables[0].width),
          n_shared_(layout_.n_shared),
          first_table_(with_nodes ? 0 : 1),
          scale_(scale),
          rate_(scale * scale),
          w_(n_shared_, 0.0) {
        std::size_t most_rows = 0, most_own = 0;
        for (const OwnTable& table : layout_.tables)
            most_rows = std::max(most_rows, static_cast<std::size_t>(table.offsets.back()));
        for (std::size_t i = 0; i < problem.n_examples(); ++i) most_own = std::max(most_own, layout_.n_own(i));
        rows_.resize(most_rows);
        std::iota(rows_.begin(), rows_.end(), 0);
        augmented_.require(most_own + kLanes);
    }

    std::size_t n_examples() const override { return problem_.n_examples(); }
    std::size_t n_tables() const override { return layout_.tables.size() - first_table_; }
    std::size_t width(std::size_t g) const override { return layout_.tables[first_table_ + g].width; }
    double scale(std::size_t g) const override { return first_table_ + g == 0 ? 1.0 : scale_; }
    bool is_there(std::size_t i) const override { return problem_.weights[i] > 0.0 && problem_.length(i) > 0; }
    std::span<const std::int32_t> members(std::size_t g, std::size_t i) const override {
        const OwnTable& table = layout_.tables[first_table_ + g];
        return {rows_.data() + table.first(i), is_there(i) ? table.n_rows(i) : 0};
    }
    double weight(std::size_t i) const override { return problem_.weights[i]; }
    std::span<double> weights() override { return {w_.data(), w_.size()}; }
    double square(std::span<const double> weights) const override {
        double sum = 0.0;
        for (const double weight : weights) sum += weight * weight;
        return sum / rate_;
    }

  protected:
    // Own parts before those that kernels score: of nodes, where kernels score edges only.
    std::size_t unscored(std::size_t i) const { return first_table_ * problem_.length(i) * n_labels_; }

    // The scores of all own parts, with the cost of wrong labels.
    double* augment(std::size_t i, const double* scores) {
        double* own = augmented_.data();
        std::fill_n(own, unscored(i), 0.0);
        std::copy_n(scores, n_scores(i), own + unscored(i));
        if (problem_.cost) problem_.structure->add_cost(i, problem_.truth(i), problem_.cost, 1.0, own);
        return own;
    }

    const Problem& problem_;
    Truth truth_;
    const PartLayout& layout_;
    const double* mask_;  // [n_shared]
    std::size_t n_labels_, n_shared_, first_table_;
    double scale_;       // of edges and shared parts
    double rate_;        // how much a score moves with a unit of mass: the square of the scale
    Aligned<double> w_;  // [n_shared] scores: the scale times the weights
    Buffer augmented_;

  private:
    std::vector<std::int32_t> rows_;
};

// At temperatures above zero.
std::unique_ptr<DualBlocks> kernel_soft_dual(const Problem& problem, double scale, bool with_nodes);
// At temperature zero: swaps of segments for chains of order 1, mixtures of labellings for every structure.
std::unique_ptr<DualBlocks> kernel_flows(const Problem& problem, double scale, bool with_nodes);
std::unique_ptr<DualBlocks> kernel_paths(const Problem& problem, double scale, bool with_nodes);

}  // namespace dualfield
