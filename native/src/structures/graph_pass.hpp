// One pass over the steps of an elimination, and one back. The table of step s has the scores of everything that
// involves its nodes and those eliminated before it, for all labels of its node v and its separator S:
//
//   table_s[v][S] = node[v] + edges among them + messages of its children,      message_s[S] = max or log sum over v.
//
// After a pass that sums, the table has p(v | S) in its place. Sums multiply exponentials, of which there are as many
// as scores, not as cells. Where a sum is so small that something may have been lost in it, the whole pass is made
// again in logarithms.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/layout.hpp"
#include "dualfield/structures/graph.hpp"
#include "elimination.hpp"

namespace dualfield {

// The two passes over one example at a time, in memory that is reused.
class GraphStructure::Pass {
  public:
    explicit Pass(const GraphStructure& graph) : graph_(graph), n_(graph.n_labels_) {}

    // Takes the scores of an example from a view whose first example is `from`.
    void begin(std::size_t example, std::size_t from, const ScoreView& view) {
        example_ = example;
        plan_ = &graph_.plan(example);
        const ScoreView own = graph_.view_of(example, from, view);
        node_ = own.own[0];
        edges_ = graph_.options_.with_edges ? own.own[1] : nullptr;
        if (view.shared != shared_ || view.inverse_temperature != factor_) {
            shared_ = view.shared;
            factor_ = view.inverse_temperature;
            read_shared();
        }
        tables_.require(std::max<std::size_t>(plan_->cells, 1));
        messages_.require(std::max<std::size_t>(plan_->messages, 1));
        total_ = 0.0;
        is_bad_ = shared_is_bad_ || !has_good_numbers();
    }
    // Reads shared scores anew the next time.
    void forget() { factor_ = 0.0; }

    const EliminationPlan& plan() const { return *plan_; }
    double* table(const EliminationStep& step) { return tables_.data() + step.table; }
    double* message(const EliminationStep& step) { return messages_.data() + step.message; }
    double total() const { return total_; }
    Status status() const {
        if (is_bad_ || !(total_ < kInfinity)) return Status::bad_number;
        return total_ > -kInfinity ? Status::ok : Status::impossible;
    }

    void up_max() {
        if (is_bad_) return;
        up<Domain::maximum>();
    }
    void up_sum() {
        if (is_bad_ || up<Domain::product>()) return;
        up<Domain::logarithm>();
    }

    // After up_sum, from the last step to the first: tables become the probabilities of their cells, and use(step,
    // table) sees each. Returns the entropy.
    template <class Use>
    double down(Use use) {
        double entropy = 0.0;
        for (std::size_t s = plan_->steps.size(); s-- > 0;) {
            const EliminationStep& step = plan_->steps[s];
            double *own = table(step), *above = message(step);
            if (step.parent < 0) {
                above[0] = 1.0;
            } else {
                const EliminationStep& parent = plan_->steps[static_cast<std::size_t>(step.parent)];
                std::fill_n(above, step.n_below, 0.0);
                const double* belief = table(parent);
                for_rows(parent.nodes.size(), n_, parent.cells, step.strides.data(),
                         [&](std::size_t cell, std::size_t at, std::size_t stride) {
                             for (std::size_t k = 0; k < n_; ++k) above[at + k * stride] += belief[cell + k];
                         });
            }
            for (std::size_t v = 0; v < n_; ++v) {
                double* row = own + v * step.n_below;
                for (std::size_t j = 0; j < step.n_below; ++j) {
                    const double mass = row[j] * above[j];
                    if (mass > 0.0) entropy -= mass * std::log(row[j]);
                    row[j] = mass;
                }
            }
            use(step, own);
        }
        return entropy;
    }

    // The place of the labels of a separator in the message of its step.
    std::size_t place(const EliminationStep& step, const std::int32_t* labels) const {
        std::size_t at = 0;
        for (std::size_t j = 1; j < step.nodes.size(); ++j)
            at = at * n_ + static_cast<std::size_t>(labels[step.nodes[j]]);
        return at;
    }

  private:
    enum class Domain { product, logarithm, maximum };

    bool has_good_numbers() const {
        bool is_good = true;
        for (std::size_t j = 0; j < graph_.length(example_) * n_; ++j) is_good &= factor_ * node_[j] < kInfinity;
        if (edges_)
            for (std::size_t j = 0; j < graph_.n_edges(example_) * n_ * n_; ++j)
                is_good &= factor_ * edges_[j] < kInfinity;
        return is_good;
    }

    // False: sums are too small for products.
    template <Domain domain>
    bool up() {
        total_ = 0.0;
        for (const EliminationStep& step : plan_->steps) {
            double *own = table(step), *below = message(step);
            fill<domain>(step, own);
            for (const std::int32_t child : step.children) {
                const EliminationStep& from = plan_->steps[static_cast<std::size_t>(child)];
                overlay<domain>(step, own, from.strides, message(from));
            }
            if (!reduce<domain>(step, own, below)) return false;
        }
        return true;
    }

    // The scores of the node, and of the edges of its step.
    template <Domain domain>
    void fill(const EliminationStep& step, double* own) {
        const double* scores = node_ + static_cast<std::size_t>(step.nodes[0]) * n_;
        double* x = x_.require(n_);
        for (std::size_t k = 0; k < n_; ++k) x[k] = factor_ * scores[k];
        if constexpr (domain == Domain::product) total_ += exponentiate(x, n_, x);
        for (std::size_t v = 0; v < n_; ++v) std::fill_n(own + v * step.n_below, step.n_below, x[v]);
        for (const EliminationStep::Edge& one : step.edges) {
            const auto edge = static_cast<std::size_t>(one.edge);
            overlay<domain>(step, own, one.strides, pairs<domain>(edge));
        }
    }

    // The scores of an edge [K][K], times the factor; their exponentials divided by the largest in the product domain.
    template <Domain domain>
    const double* pairs(std::size_t edge) {
        const std::size_t type = graph_.type_of(graph_.first_edge(example_) + edge), size = n_ * n_;
        const double* table = shared_scores_.data() + type * size;
        if constexpr (domain == Domain::product) {
            if (!edges_) {
                total_ += shifts_[type];
                return shared_exponentials_.data() + type * size;
            }
        }
        if (!edges_) return table;
        double* own = pairs_.require(size);
        for (std::size_t j = 0; j < size; ++j) own[j] = table[j] + factor_ * edges_[edge * size + j];
        if constexpr (domain == Domain::product) total_ += exponentiate(own, size, own);
        return own;
    }

    template <Domain domain>
    void overlay(const EliminationStep& step, double* own, const std::vector<std::size_t>& strides,
                 const double* other) const {
        for_rows(step.nodes.size(), n_, step.cells, strides.data(),
                 [&](std::size_t cell, std::size_t at, std::size_t stride) {
                     for (std::size_t k = 0; k < n_; ++k) {
                         if constexpr (domain == Domain::product)
                             own[cell + k] *= other[at + k * stride];
                         else
                             own[cell + k] += other[at + k * stride];
                     }
                 });
    }

    // The message, and in the place of the table p(v | S); the last step of a component adds to the total.
    template <Domain domain>
    bool reduce(const EliminationStep& step, double* own, double* below) {
        const std::size_t size = step.n_below;
        std::copy_n(own, size, below);
        for (std::size_t v = 1; v < n_; ++v) {
            const double* row = own + v * size;
            for (std::size_t j = 0; j < size; ++j) {
                if constexpr (domain == Domain::product)
                    below[j] += row[j];
                else
                    below[j] = std::max(below[j], row[j]);
            }
        }
        if constexpr (domain == Domain::product) {
            double lowest = below[0], highest = below[0];
            for (std::size_t j = 1; j < size; ++j) {
                lowest = std::min(lowest, below[j]);
                highest = std::max(highest, below[j]);
            }
            if (!(lowest > kSmallSum)) return false;
            for (std::size_t v = 0; v < n_; ++v)
                for (std::size_t j = 0; j < size; ++j) own[v * size + j] /= below[j];
            total_ += std::log(highest);
            for (std::size_t j = 0; j < size; ++j) below[j] /= highest;
            return true;
        }
        if constexpr (domain == Domain::logarithm) {
            for (std::size_t j = 0; j < size; ++j) {
                const double shift = below[j] > -kInfinity ? below[j] : 0.0;
                double sum = 0.0;
                for (std::size_t v = 0; v < n_; ++v) sum += own[v * size + j] = std::exp(own[v * size + j] - shift);
                for (std::size_t v = 0; v < n_ && sum > 0.0; ++v) own[v * size + j] /= sum;
                below[j] = sum > 0.0 ? shift + std::log(sum) : -kInfinity;
            }
        }
        if (step.parent < 0) total_ += below[0];
        return true;
    }

    // out = exp(scores - the highest), which is returned.
    static double exponentiate(const double* scores, std::size_t size, double* out) {
        const double highest = *std::max_element(scores, scores + size);
        const double shift = highest > -kInfinity ? highest : 0.0;
        for (std::size_t j = 0; j < size; ++j) out[j] = std::exp(scores[j] - shift);
        return shift;
    }

    void read_shared() {
        const std::size_t size = n_ * n_, n_types = graph_.options_.n_types;
        double *scores = shared_scores_.require(n_types * size), *out = shared_exponentials_.require(n_types * size);
        shared_is_bad_ = false;
        for (std::size_t j = 0; j < n_types * size; ++j) {
            const double limit = graph_.options_.limits ? graph_.options_.limits[j] : 0.0;
            scores[j] = factor_ * ((shared_ ? shared_[j] : 0.0) + limit);
            shared_is_bad_ |= !(scores[j] < kInfinity);
        }
        shifts_.resize(n_types);
        for (std::size_t type = 0; type < n_types; ++type)
            shifts_[type] = exponentiate(scores + type * size, size, out + type * size);
    }

    static constexpr double kSmallSum = 1e-250;  // something may have been lost in sums below it

    const GraphStructure& graph_;
    const EliminationPlan* plan_ = nullptr;
    std::size_t n_, example_ = 0;
    const double *node_ = nullptr, *edges_ = nullptr, *shared_ = nullptr;
    double factor_ = 0.0, total_ = 0.0;
    bool is_bad_ = false, shared_is_bad_ = false;
    std::vector<double> shifts_;
    Buffer tables_, messages_, shared_scores_, shared_exponentials_, pairs_, x_;
};

}  // namespace dualfield
