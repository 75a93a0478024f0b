// The questions about a batch of chains, over all examples at once: what ChainStructure hands its scores to.
#pragma once

#include "dualfield/structures/chains/chain_scores.hpp"
#include "dualfield/structures/structure.hpp"

namespace dualfield {

// Which clique marginals a call writes.
enum class CliqueOutput { none, each, sum };

// N nodes, n examples, E edges, K labels.
class ChainQueries {
  public:
    // All must outlive the queries; statuses [n].
    ChainQueries(const ChainTopology& topology, const ChainScores& scores, std::size_t n_threads, Status* statuses);

    void argmax(std::int32_t* labels);  // [N]
    void maximum(double* out);          // [n]
    void log_partition(double* out);    // [n]
    void max_marginals(double* nodes);  // [N][K]
    void entropy(double* out);          // [n]
    // nodes [N][K]; cliques [E][n_cliques] or [n][n_cliques]; log_partition [n].
    void marginals(double* nodes, CliqueOutput which, double* cliques, double* log_partition);
    void sample(std::size_t n_samples, std::uint64_t seed, std::int32_t* labels);  // [n_samples][N]
    void k_best(std::size_t k, std::int32_t* labels, double* scores);              // [k][N], [n][k]
    void score(const std::int32_t* labels, double* out);                           // [N], [n]

  private:
    const ChainTopology& topology_;
    const ChainScores& scores_;
    const std::size_t n_threads_;
    Status* statuses_;
};

}  // namespace dualfield
