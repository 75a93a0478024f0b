// Inference on single nodes: every row of scores is an example of its own, and there are no edges.
#pragma once

#include "dualfield/structures/oracle.hpp"

namespace dualfield {

struct SingleScores {
    std::size_t n_rows = 0, n_labels = 0;
    const double* node = nullptr;  // [n][K]
    const double* cost = nullptr;  // [n][K], added to node; may be null
    double inverse_temperature = 1.0;
};

class SingleOracle final : public Oracle {
  public:
    SingleOracle(const SingleScores& scores, std::size_t n_threads) : Oracle(n_threads), scores_(scores) {
        statuses_.assign(scores.n_rows, Status::ok);
    }

    std::size_t n_examples() const override { return scores_.n_rows; }
    std::size_t n_nodes() const override { return scores_.n_rows; }
    std::size_t n_labels() const override { return scores_.n_labels; }
    std::size_t n_edges() const override { return 0; }
    std::size_t n_cliques() const override { return 0; }

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
    template <class Body>
    void for_rows(Body body);

    const SingleScores scores_;
};

}  // namespace dualfield
