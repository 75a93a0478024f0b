// The dual points of all examples of a problem at temperature zero, as sparse tables of the cliques of junction trees,
// next to their true labellings. Tables that agree on the nodes they share are those of a distribution over labellings;
// beliefs of edges alone need not be, and would bound nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "clique_layout.hpp"
#include "dualfield/solvers/solver_state.hpp"
#include "sparse_flow.hpp"

namespace dualfield {

// A row is a clique; an edge of it leads from the labels of its separator to those of its residual.
class CliqueTables : public SparseFlow {
  public:
    CliqueTables(const Problem& problem, const CliqueLayout& layout)
        : SparseFlow(layout.n_cliques()), problem_(problem), layout_(layout), labels_(problem.longest()) {}

    void begin_at_truth() {
        for (std::size_t i = 0; i < problem_.n_examples(); ++i)
            for (std::size_t c = layout_.first(i); c < layout_.first(i + 1); ++c) {
                const FlowEdge true_one = true_edge(i, c);
                add(c, true_one.from, true_one.to, 1.0);
            }
    }
    FlowEdge edge_of(std::size_t c, const std::vector<std::uint32_t>& labels) const {
        const Clique& one = layout_.clique(c);
        return {layout_.code(layout_.separator(one), labels), layout_.code(layout_.residual(one), labels), 0.0};
    }
    void decode(std::size_t c, const FlowEdge& edge, std::vector<std::uint32_t>& labels) const {
        const Clique& one = layout_.clique(c);
        layout_.decode(layout_.separator(one), edge.from, labels);
        layout_.decode(layout_.residual(one), edge.to, labels);
    }
    bool is_truth(std::size_t i, std::size_t c) const {
        const FlowEdge true_one = true_edge(i, c);
        return edges(c).size() == 1 && edges(c)[0].from == true_one.from && edges(c)[0].to == true_one.to;
    }

    // Makes the tables of an example agree again: what was dropped, and rounding, leave them a little apart, and no
    // bound holds at such a point.
    void balance(std::size_t i) {
        const std::size_t begin = layout_.first(i), end = layout_.first(i + 1);
        for (std::size_t c = end; c-- > begin;) {  // what leads nowhere
            const Clique& one = layout_.clique(c);
            for (std::int32_t child = one.first_child; child >= 0;) {
                const std::size_t below = begin + static_cast<std::size_t>(child);
                drop(c, [&](const FlowEdge& edge) {
                    const std::uint32_t code = code_of_child(c, edge, below);
                    const auto there = edges(below);
                    return std::none_of(there.begin(), there.end(), [&](const FlowEdge& e) { return e.from == code; });
                });
                child = layout_.clique(below).next_sibling;
            }
        }
        for (std::size_t c = begin; c < end; ++c) {
            arriving_.clear();
            const Clique& one = layout_.clique(c);
            if (one.parent < 0) {
                arriving_.push_back({0, 0, 1.0});
            } else {
                const std::size_t above = begin + static_cast<std::size_t>(one.parent);
                for (const FlowEdge& edge : edges(above)) gather(code_of_child(above, edge, c), edge.mass);
            }
            drop(c, [&](const FlowEdge& edge) { return mass_of(edge.from) == 0.0; });  // what comes from nowhere
            rescale(c);
        }
    }

    // Calls use(labels of the clique, mass) for what a table has, less the truth; nothing where it is the truth.
    template <class Use>
    void for_difference(std::size_t i, std::size_t c, const Use& use) {
        if (is_truth(i, c)) return;
        for (const FlowEdge& edge : edges(c)) {
            decode(c, edge, labels_);
            use(labels_, -edge.mass);
        }
        decode(c, true_edge(i, c), labels_);
        use(labels_, 1.0);
    }
    // Adds the masses of labels of nodes to out [length][K].
    void add_nodes(std::size_t i, double* out) {
        for (std::size_t c = layout_.first(i); c < layout_.first(i + 1); ++c)
            for (const FlowEdge& edge : edges(c)) {
                const auto nodes = layout_.residual(layout_.clique(c));
                layout_.decode(nodes, edge.to, labels_);
                for (const std::int32_t v : nodes) {
                    const auto node = static_cast<std::size_t>(v);
                    out[node * layout_.n_labels() + labels_[node]] += edge.mass;
                }
            }
    }

    // Into tables that are empty. Throws StateError where they are none of these examples.
    void read(const SolverState& state) {
        read_edges(state, [&](std::size_t c, std::uint64_t from, std::uint64_t to) {
            const Clique& one = layout_.clique(c);
            return from < n_codes(one.n_separator) && to < n_codes(one.n_nodes - one.n_separator);
        });
        for (std::size_t i = 0; i < problem_.n_examples(); ++i)
            for (std::size_t c = layout_.first(i); c < layout_.first(i + 1); ++c) check(i, c);
    }

  private:
    static constexpr double kLostMass = 1e-6;  // what dropped entries and rounding may add up to

    FlowEdge true_edge(std::size_t i, std::size_t c) const {
        const Clique& one = layout_.clique(c);
        const std::int32_t* truth = problem_.truth(i);
        return {layout_.code(layout_.separator(one), truth), layout_.code(layout_.residual(one), truth), 1.0};
    }
    std::uint64_t n_codes(std::size_t n_nodes) const {
        std::uint64_t count = 1;
        for (std::size_t j = 0; j < n_nodes; ++j) count *= layout_.n_labels();
        return count;
    }
    // The labels of a child's separator in an entry of its parent.
    std::uint32_t code_of_child(std::size_t parent, const FlowEdge& edge, std::size_t child) {
        decode(parent, edge, labels_);
        return layout_.code(layout_.separator(layout_.clique(child)), labels_);
    }
    void gather(std::uint32_t code, double mass) {
        for (FlowEdge& known : arriving_)
            if (known.from == code) {
                known.mass += mass;
                return;
            }
        arriving_.push_back({code, 0, mass});
    }
    double mass_of(std::uint32_t code) const {
        for (const FlowEdge& known : arriving_)
            if (known.from == code) return known.mass;
        return 0.0;
    }
    void rescale(std::size_t c) {
        before_.assign(edges(c).begin(), edges(c).end());
        for (std::size_t e = 0; e < before_.size(); ++e) {
            double sum = 0.0;
            for (const FlowEdge& other : before_) sum += other.from == before_[e].from ? other.mass : 0.0;
            set_mass(c, e, mass_of(before_[e].from) * (before_[e].mass / sum));
        }
        count_labels(c);
    }
    // The masses must be 1 in all, and those of a separator the same on both sides.
    void check(std::size_t i, std::size_t c) {
        const Clique& one = layout_.clique(c);
        arriving_.clear();
        if (one.parent < 0) {
            arriving_.push_back({0, 0, 1.0});
        } else {
            const std::size_t above = layout_.first(i) + static_cast<std::size_t>(one.parent);
            for (const FlowEdge& edge : edges(above)) gather(code_of_child(above, edge, c), edge.mass);
        }
        for (const FlowEdge& edge : edges(c)) gather(edge.from, -edge.mass);
        for (const FlowEdge& known : arriving_)
            if (!(std::abs(known.mass) <= kLostMass)) throw StateError("the flow is no distribution over labellings");
    }

    const Problem& problem_;
    const CliqueLayout& layout_;
    std::vector<std::uint32_t> labels_;
    std::vector<FlowEdge> arriving_, before_;
};

}  // namespace dualfield
