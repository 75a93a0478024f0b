// The dual points of all chains of a problem at temperature zero, as sparse flows, next to their true labellings.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "dualfield/objectives/problem.hpp"
#include "sparse_flow.hpp"

namespace dualfield {

class ChainFlow : public SparseFlow {
  public:
    // The structure must be a chain of order 1.
    explicit ChainFlow(const Problem& problem)
        : SparseFlow(problem.n_nodes()), problem_(problem), width_(problem.structure->n_labels()) {}

    std::uint32_t truth(std::size_t i, std::size_t t) const { return static_cast<std::uint32_t>(problem_.truth(i)[t]); }
    std::uint32_t truth_before(std::size_t i, std::size_t t) const { return t == 0 ? 0 : truth(i, t - 1); }

    void begin_at_truth() {
        for (std::size_t i = 0; i < problem_.n_examples(); ++i)
            for (std::size_t t = 0; t < problem_.length(i); ++t)
                add(problem_.first(i) + t, truth_before(i, t), truth(i, t), 1.0);
    }

    // Calls use(t, from, to, mass) for the edges of u_i - mu_i, at the nodes where the flow is not the truth.
    template <class Use>
    void for_difference(std::size_t i, const Use& use) const {
        for (std::size_t t = 0; t < problem_.length(i); ++t) {
            const auto found = edges(problem_.first(i) + t);
            const std::uint32_t from = truth_before(i, t), to = truth(i, t);
            if (found.size() == 1 && found[0].to == to && found[0].from == from) continue;
            for (const FlowEdge& edge : found) use(t, edge.from, edge.to, -edge.mass);
            use(t, from, to, 1.0);
        }
    }

    // <D_i, mu_i>.
    double expected_cost(std::size_t i) const {
        double sum = 0.0;
        for (std::size_t t = 0; problem_.cost && t < problem_.length(i); ++t)
            for (const FlowEdge& edge : edges(problem_.first(i) + t))
                sum += edge.mass * problem_.cost[truth(i, t) * width_ + edge.to];
        return sum;
    }

    // Into a flow that is empty. Throws StateError where it is none of these chains.
    void read(const SolverState& state) {
        read_edges(state,
                   [&](std::size_t, std::uint64_t from, std::uint64_t to) { return from < width_ && to < width_; });
        check();
    }

  private:
    static constexpr double kLostMass = 1e-6;  // what dropped edges and rounding may add up to

    // The flow must be a distribution over labellings: what comes into a label leaves it, and all of it is 1.
    void check() const {
        std::vector<double> coming(width_), leaving(width_);
        for (std::size_t i = 0; i < problem_.n_examples(); ++i)
            for (std::size_t t = 0; t < problem_.length(i); ++t) {
                const auto found = edges(problem_.first(i) + t);
                double rest = 1.0;
                std::fill(leaving.begin(), leaving.end(), 0.0);
                for (const FlowEdge& edge : found) {
                    leaving[edge.from] += edge.mass;
                    rest -= edge.mass;
                }
                bool is_kept = std::abs(rest) <= kLostMass;
                for (std::size_t k = 0; t > 0 && k < width_; ++k)
                    is_kept = is_kept && std::abs(coming[k] - leaving[k]) <= kLostMass;
                if (!is_kept) throw StateError("the flow is no distribution over labellings");
                std::fill(coming.begin(), coming.end(), 0.0);
                for (const FlowEdge& edge : found) coming[edge.to] += edge.mass;
            }
    }

    const Problem& problem_;
    std::size_t width_;  // number of labels
};

}  // namespace dualfield
