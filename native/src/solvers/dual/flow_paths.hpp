// Best and worst path among those that a sparse flow has mass on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dualfield/core/layout.hpp"
#include "sparse_flow.hpp"

namespace dualfield {

class FlowPaths {
  public:
    // Over the nodes [from, to) of a chain that begins at row `first` and has `length` nodes; where it does not begin
    // or end there, the node before or after has one label only. scores [length][n_labels] of the labels with mass,
    // cliques [n_labels][n_labels]; start and stop are added at the ends of the chain, and edges [length - 1][n_labels]
    // [n_labels] to cliques, unless they are null.
    void find(const SparseFlow& flow, std::size_t first, std::size_t length, std::size_t from, std::size_t to,
              const double* scores, const double* cliques, std::size_t n_labels, const double* start = nullptr,
              const double* stop = nullptr, const double* edges = nullptr) {
        const auto step_of = [&](std::size_t t, const FlowEdge& edge) {
            const std::size_t clique = edge.from * n_labels + edge.to;
            return edges ? cliques[clique] + edges[(t - 1) * n_labels * n_labels + clique] : cliques[clique];
        };
        from_ = from;
        to_ = to;
        n_labels_ = n_labels;
        if (cells_.size() < (to - from) * n_labels) cells_.resize(checked_product(to - from, n_labels));
        for (std::size_t t = from; t < to; ++t) {
            const auto found = flow.edges(first + t);
            Cell* own = cells_.data() + (t - from) * n_labels;
            for (const FlowEdge& edge : found) own[edge.to] = {};
            for (const FlowEdge& edge : found) {
                const double step = t > 0 ? step_of(t, edge) : 0.0;
                own[edge.to].take(before(t, edge.from), step, edge.from);
            }
            // Once for each label, at its first edge.
            for (const FlowEdge& edge : found) {
                Cell& cell = own[edge.to];
                if (cell.is_scored) continue;
                cell.is_scored = true;
                double score = scores[t * n_labels + edge.to];
                if (start && t == 0) score += start[edge.to];
                if (stop && t + 1 == length) score += stop[edge.to];
                cell.high += score;
                cell.low += score;
            }
        }
        // By the edges that lead out, or at the end of the chain by the labels of the last node.
        Cell end;
        const bool inside = to < length;
        for (const FlowEdge& edge : flow.edges(first + (inside ? to : to - 1))) {
            const std::uint32_t label = inside ? edge.from : edge.to;
            end.take(before(to, label), inside ? step_of(to, edge) : 0.0, label);
        }
        end_ = end;
    }

    double maximum() const { return end_.high; }

    // The two labellings, at [from, to) of vectors over the nodes of the chain.
    void trace(std::vector<std::uint32_t>& best, std::vector<std::uint32_t>& worst) const {
        std::uint32_t high = end_.high_from, low = end_.low_from;
        for (std::size_t t = to_; t-- > from_;) {
            best[t] = high;
            worst[t] = low;
            high = cells_[(t - from_) * n_labels_ + high].high_from;
            low = cells_[(t - from_) * n_labels_ + low].low_from;
        }
    }

  private:
    struct Cell {
        double high = -kInfinity, low = kInfinity;
        std::uint32_t high_from = 0, low_from = 0;
        bool is_scored = false;

        void take(const Cell& before, double step, std::uint32_t label) {
            if (before.high + step > high) {
                high = before.high + step;
                high_from = label;
            }
            if (before.low + step < low) {
                low = before.low + step;
                low_from = label;
            }
        }
    };
    Cell before(std::size_t t, std::uint32_t label) const {
        if (t == from_) return {0.0, 0.0, 0, 0, true};
        return cells_[(t - 1 - from_) * n_labels_ + label];
    }

    std::size_t from_ = 0, to_ = 0, n_labels_ = 0;
    std::vector<Cell> cells_;
    Cell end_;
};

}  // namespace dualfield
