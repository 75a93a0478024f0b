// Outputs of one fixed shape: nodes with numbers of labels of their own, and factors over any of them, exact by
// elimination on a junction tree. No structure of own and shared parts: a factor is as large as its scope makes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dualfield/structures/graphs/elimination.hpp"
#include "dualfield/structures/structure.hpp"

namespace dualfield {

// score(y) = sum_f tables[f][labels of its scope]; -inf forbids.
struct FactorBatch {
    std::size_t n_examples = 0;
    std::vector<const double*> tables;    // [n_factors]: [n_examples][cells], or [cells] where shared
    std::vector<bool> is_shared;          // [n_factors]
    const std::int32_t* known = nullptr;  // [n_examples][n_nodes]: labels, -1 where not known; null: none
    double inverse_temperature = 1.0;
    std::size_t n_threads = 1;
};

// What is told of an answer: where an example has none, and whether there are scores so large that sums may overflow.
struct FactorReport {
    std::vector<Status> statuses;  // [n_examples]
    bool is_huge = false;
};

// Every example is computed on its own, so answers do not depend on the number of threads. Scores are not divided by
// the temperature.
class FactorGraph {
  public:
    // Where the limits are passed, only the order, the width and the last step of the plan are of use.
    FactorGraph(std::vector<std::int32_t> n_labels, const Scopes& scopes, const EliminationLimits& limits);

    const EliminationPlan& plan() const { return plan_; }
    std::size_t n_nodes() const { return n_labels_.size(); }
    std::size_t n_labels(std::size_t node) const { return static_cast<std::size_t>(n_labels_[node]); }

    // [n_examples]: T log sum_y exp(score(y) / T), and the highest score.
    FactorReport log_partition(const FactorBatch&, double* out) const;
    FactorReport maximum(const FactorBatch&, double* out) const;
    // labels [n_examples][n_nodes]; among equals the one whose node that is eliminated last has the lowest label, then
    // the node before it, and so on.
    FactorReport argmax(const FactorBatch&, std::int32_t* labels) const;
    // The probabilities of factors [n_factors] or nodes [n_nodes], each [n_examples][cells]; null: not wanted.
    FactorReport marginals(const FactorBatch&, double* const* factors, double* const* nodes) const;
    // [n_examples]: - sum_y p(y) log p(y).
    FactorReport entropy(const FactorBatch&, double* out) const;
    // Exact draws from p(y): labels [n_samples][n_examples][n_nodes].
    FactorReport sample(const FactorBatch&, std::size_t n_samples, std::uint64_t seed, std::int32_t* labels) const;
    // For each label of each node [n_examples][labels] the highest score of a labelling that has it.
    FactorReport max_marginals(const FactorBatch&, double* const* nodes) const;

    // The k best labellings, best first: labels [k][n_examples][n_nodes], scores [n_examples][k]; where there are
    // fewer, -1 and -inf. The last factors must be those of single nodes, one for each in order.
    FactorReport k_best(const FactorBatch&, std::size_t k, std::int32_t* labels, double* scores) const;

  private:
    class Pass;
    template <class Body>
    FactorReport for_groups(const FactorBatch&, bool in_lanes, Body body) const;

    std::vector<std::int32_t> n_labels_;
    EliminationPlan plan_;
};

}  // namespace dualfield
