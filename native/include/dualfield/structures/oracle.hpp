// What can be asked of a batch of scored labellings, whatever their structure.
//
// Scores are in units of 1 / T: p(y) ~ exp(score(y)) after multiplication by the inverse temperature.
// Each example is computed on its own, so results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dualfield {

enum class Status : std::uint8_t {
    ok = 0,
    impossible = 1,  // every labelling is forbidden
    bad_number = 2,  // NaN or +inf among the scores
};

// Which clique marginals a call writes.
enum class CliqueOutput { none, each, sum };

// N nodes, n examples, E edges, K labels. After a query, statuses() tells which examples have an answer; what was
// written for the others is undefined.
class Oracle {
  public:
    virtual ~Oracle() = default;

    virtual std::size_t n_examples() const = 0;
    virtual std::size_t n_nodes() const = 0;
    virtual std::size_t n_labels() const = 0;
    virtual std::size_t n_edges() const = 0;
    virtual std::size_t n_cliques() const = 0;

    // Best labelling [N]; among equals the one whose last label is lowest, then the one before it, and so on.
    virtual void argmax(std::int32_t* labels) = 0;
    // [n]: the highest score.
    virtual void maximum(double* out) = 0;
    // [n]: log sum_y exp(score(y)).
    virtual void log_partition(double* out) = 0;
    // nodes [N][K]; cliques [E][n_cliques] or [n][n_cliques]; log_partition [n].
    virtual void marginals(double* nodes, CliqueOutput which, double* cliques, double* log_partition) = 0;
    // [N][K]: the highest score of a labelling that has label k at node t.
    virtual void max_marginals(double* nodes) = 0;
    // [n]: - sum_y p(y) log p(y).
    virtual void entropy(double* out) = 0;
    // Exact draws from p(y), labels [n_samples][N].
    virtual void sample(std::size_t n_samples, std::uint64_t seed, std::int32_t* labels) = 0;
    // The k best labellings, best first: labels [k][N], scores [n][k]; where there are fewer, -1 and -inf.
    virtual void k_best(std::size_t k, std::int32_t* labels, double* scores) = 0;
    // [n]: score of given labellings [N], each label in [0, K); -inf where forbidden. Reports bad numbers only.
    virtual void score(const std::int32_t* labels, double* out) = 0;

    const std::vector<Status>& statuses() const { return statuses_; }

  protected:
    explicit Oracle(std::size_t n_threads) : n_threads_(n_threads) {}

    std::size_t n_threads_;
    std::vector<Status> statuses_;
};

}  // namespace dualfield
