// Exact inference on a batch of chains of any order.
#pragma once

#include <span>

#include "dualfield/structures/chain_scores.hpp"
#include "dualfield/structures/oracle.hpp"

namespace dualfield {

// score(y) = sum_t node[t][y_t] + sum_t transition[y_{t-k} ... y_t] + start[y_0] + stop[y_{T-1}]; -inf forbids.
class ChainOracle final : public Oracle {
  public:
    // Both must outlive the oracle.
    ChainOracle(const ChainTopology& topology, const ChainScores& scores, std::size_t n_threads)
        : Oracle(n_threads), topology_(topology), scores_(scores) {
        statuses_.assign(scores.n_examples(), Status::ok);
    }

    std::size_t n_examples() const override { return scores_.n_examples(); }
    std::size_t n_nodes() const override { return scores_.n_nodes(); }
    std::size_t n_labels() const override { return topology_.n_labels(); }
    std::size_t n_edges() const override { return static_cast<std::size_t>(scores_.edge_offsets.back()); }
    std::size_t n_cliques() const override { return topology_.n_cliques(); }

    void argmax(std::int32_t* labels) override;
    void maximum(double* out) override;
    void log_partition(double* out) override;
    void marginals(double* nodes, CliqueOutput which, double* cliques, double* log_partition) override;
    void max_marginals(double* nodes) override;
    void entropy(double* out) override;
    void sample(std::size_t n_samples, std::uint64_t seed, std::int32_t* labels) override;
    void k_best(std::size_t k, std::int32_t* labels, double* scores) override;
    void score(const std::int32_t* labels, double* out) override;

  private:
    const ChainTopology& topology_;
    const ChainScores& scores_;
};

// Index of the clique that ends at each node but the first, [E]; -1 where the window of labels is not listed.
void clique_indices(const ChainTopology& topology, std::span<const std::int64_t> offsets, const std::int32_t* labels,
                    std::int64_t* out);

}  // namespace dualfield
