// Chains of any order as a structure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dualfield/structures/chains/chain_scores.hpp"
#include "dualfield/structures/structure.hpp"

namespace dualfield {

// score(y) = sum_t node[t][y_t] + sum_t transition[y_{t-k} ... y_t] + start[y_0] + stop[y_{T-1}]; -inf forbids.
//
// Own parts: a row of K labels for each node; where edges have scores of their own, a row of n_cliques for each edge.
// Shared parts: the cliques; where ends have scores, K first and K last labels.
class ChainStructure final : public Structure {
  public:
    struct Options {
        bool with_edges = false, with_ends = false;
        const double* start_limits = nullptr;  // [K]: 0, or -inf for a label that may not stand first; may be null
        const double* stop_limits = nullptr;   // the same for the last one
    };
    // All must outlive the structure. offsets [n + 1]: the nodes of each example; features of an edge are in the row of
    // the node that it leads to.
    ChainStructure(const ChainTopology& topology, std::span<const std::int64_t> offsets, const Options& options);

    const ChainTopology& topology() const { return topology_; }
    bool with_edges() const { return options_.with_edges; }
    bool with_ends() const { return options_.with_ends; }
    const double* start_limits() const { return options_.start_limits; }
    const double* stop_limits() const { return options_.stop_limits; }
    // Among the shared parts.
    std::size_t start_begin() const { return topology_.n_cliques(); }
    std::size_t stop_begin() const { return topology_.n_cliques() + topology_.n_labels(); }

    std::size_t n_labels() const override { return topology_.n_labels(); }
    void log_partition(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void marginals(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                   Status*) const override;
    void maximum(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, Status*) const override;
    void score(Examples, const ScoreView&, std::size_t n_threads, const std::int32_t* labels, double* out,
               Status*) const override;
    void list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const override;
    void max_marginals(Examples, const ScoreView&, std::size_t n_threads, double* own, Status*) const override;
    void entropy(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void sample(Examples, const ScoreView&, std::size_t n_threads, std::size_t n_samples, std::uint64_t seed,
                std::int32_t* labels, Status*) const override;
    void k_best(Examples, const ScoreView&, std::size_t n_threads, std::size_t k, std::int32_t* labels, double* scores,
                Status*) const override;
    std::string refusal(std::size_t example, const std::int32_t* labels) const override;
    double score_parts(std::size_t example, const ScoreView& scores, const PartSpan& parts) const override;
    std::unique_ptr<Slope> slope() const override;
    std::unique_ptr<Block> block() const override;
    const ChainStructure* chain() const override { return this; }

  private:
    const ChainTopology& topology_;
    const Options options_;
    std::vector<std::int64_t> edge_offsets_, edge_rows_;  // [n + 1], [n]
};

// Index of the clique that ends at each node but the first, [E]; -1 where the window of labels is not listed.
void clique_indices(const ChainTopology& topology, std::span<const std::int64_t> offsets, const std::int32_t* labels,
                    std::int64_t* out);

}  // namespace dualfield
