// Passes over graphs of one shape, in memory that is reused: factors are nodes, then edges.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "dualfield/structures/graphs/graph.hpp"
#include "junction_pass.hpp"

namespace dualfield {

class GraphStructure::Pass {
  public:
    explicit Pass(const GraphStructure& graph)
        : graph_(graph),
          width_(graph.edge_width_),
          shared_scores_(graph.parts_.n_shared),
          ready_(graph.options_.n_types, graph.parts_.n_shared) {}

    // Takes the scores of some examples of one shape from a view whose first example is `from`.
    void begin(std::span<const std::size_t> examples, std::size_t from, const ScoreView& view) {
        examples_ = examples;
        n_nodes_ = graph_.length(examples[0]);
        n_edges_ = graph_.n_edges(examples[0]);
        factor_ = view.inverse_temperature;
        if (view.shared != shared_ || factor_ != shared_factor_) read_shared(view);
        junction.begin(graph_.plan(examples[0]), examples.size(), factor_);
        junction.for_lanes([&](std::size_t lane, std::size_t i) {
            const ScoreView own = graph_.view_of(examples[i], from, view);
            for (std::size_t t = 0; t < n_nodes_; ++t) junction.factor(t).own[lane] = own.own[0] + t * graph_.n_labels_;
            const double* edges = graph_.options_.with_edges ? own.own[1] : nullptr;
            for (std::size_t e = 0; e < n_edges_; ++e) {
                FactorScores& factor = junction.factor(n_nodes_ + e);
                const std::size_t type = type_of(i, e);
                if (edges) factor.own[lane] = edges + e * width_ + graph_.row_begin(type);
                if (edges && !has_shared_) continue;
                factor.shared[lane] = shared_scores_.data() + graph_.table(type);
                if (edges) continue;
                // Lanes with other types than the first read their tables one by one.
                const bool is_same = lane == 0 || (factor.ready && factor.shared[0] == factor.shared[lane]);
                factor.ready = is_same ? ready_[type] : nullptr;
            }
        });
    }
    // Reads shared scores anew the next time.
    void forget() { shared_factor_ = 0.0; }

    double total(std::size_t i) const { return factor_ * junction.total(i); }

    // The probabilities of the parts of the examples that are meant, after a pass up; where(i) says where they go:
    // edges and shared sums may be null.
    struct Place {
        double *nodes, *edges, *shared;
    };
    template <class Where>
    void spread(Where where) {
        nodes_.assign(n_nodes_, {});
        factors_.assign(n_nodes_ + n_edges_, {});
        for (std::size_t i = 0; i < examples_.size(); ++i) {
            if (!junction.is_meant(i) || junction.status(i) != Status::ok) continue;
            const Place to = where(i);
            for (std::size_t t = 0; t < n_nodes_; ++t) nodes_[t].own[i] = to.nodes + t * graph_.n_labels_;
            for (std::size_t e = 0; e < n_edges_; ++e) {
                FactorSums& sums = factors_[n_nodes_ + e];
                const std::size_t type = type_of(i, e);
                if (to.edges) {
                    double* row = to.edges + e * width_;
                    sums.own[i] = row + graph_.row_begin(type);
                    std::fill(row, sums.own[i], 0.0);
                    std::fill(sums.own[i] + graph_.table_cells(type), row + width_, 0.0);
                }
                if (to.shared) sums.shared[i] = to.shared + graph_.table(type);
            }
            if (to.shared) std::fill_n(to.shared, graph_.parts_.n_shared, 0.0);
        }
        junction.down(factors_.data(), nodes_.data());
    }
    // The highest scores of labellings with each label of each node, after a pass up that maximises.
    void spread_best(double* own) {
        nodes_.assign(n_nodes_, {});
        for (std::size_t t = 0; t < n_nodes_; ++t) nodes_[t].own[0] = own + t * graph_.n_labels_;
        junction.best_down(nodes_.data());
        for (std::size_t j = 0; j < n_nodes_ * graph_.n_labels_; ++j)
            if (own[j] > -kInfinity) own[j] *= factor_;
    }

    JunctionPass junction;

  private:
    std::size_t type_of(std::size_t i, std::size_t edge) const {
        return graph_.type_of(graph_.first_edge(examples_[i]) + edge);
    }
    void read_shared(const ScoreView& view) {
        shared_ = view.shared;
        shared_factor_ = factor_;
        has_shared_ = shared_ || graph_.options_.limits;
        for (std::size_t j = 0; j < shared_scores_.size(); ++j)
            shared_scores_[j] =
                (shared_ ? shared_[j] : 0.0) + (graph_.options_.limits ? graph_.options_.limits[j] : 0.0);
        ready_.clear();
        for (std::size_t type = 0; type < graph_.options_.n_types; ++type)
            ready_.add(type, shared_scores_.data() + graph_.table(type), graph_.table_cells(type), factor_);
    }

    const GraphStructure& graph_;
    std::size_t width_, n_nodes_ = 0, n_edges_ = 0;
    std::span<const std::size_t> examples_;
    const double* shared_ = nullptr;
    double factor_ = 0.0, shared_factor_ = 0.0;
    bool has_shared_ = false;
    std::vector<double> shared_scores_;  // with what is forbidden
    SharedFactors ready_;
    std::vector<FactorSums> nodes_, factors_;
};

}  // namespace dualfield
