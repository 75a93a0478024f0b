// One pass from the leaves to the roots, and one back. With b_t the scores of node t and of all below it,
//
//   m_t[a] = max or log sum over k of edge[t][a][k] + b_t[k],      b_p = node[p] + sum of m_t over the children t of p.
//
// Sums multiply exponentials of the edge's table, each divided by its largest, with exponentials of b_t, divided by
// theirs: K exponentials for a node instead of K^2. A sum so small that something may have been lost in it is computed
// again in logarithms.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "../flush.hpp"
#include "dualfield/core/buffer.hpp"
#include "dualfield/core/layout.hpp"
#include "dualfield/structures/graphs/tree.hpp"

namespace dualfield {

inline constexpr double kSmallSum = 1e-250;  // something may have been lost in sums below it

// out [n] becomes proportional to exp(scores) and sums to 1; returns the log-sum-exp.
inline double soften(const double* scores, std::size_t n, double* out) {
    const double highest = *std::max_element(scores, scores + n);
    if (!(highest > -kInfinity)) {
        std::fill_n(out, n, 0.0);
        return highest;
    }
    double total = 0.0;
    for (std::size_t k = 0; k < n; ++k) total += out[k] = exp_or_zero(scores[k] - highest);
    for (std::size_t k = 0; k < n; ++k) out[k] /= total;
    return highest + std::log(total);
}

// The two passes over one example at a time, in memory that is reused.
class TreeStructure::Pass {
  public:
    explicit Pass(const TreeStructure& tree) : tree_(tree), n_(tree.n_labels_) {}

    // Takes the scores of an example from a view whose first example is `from`.
    void begin(std::size_t example, std::size_t from, const ScoreView& view) {
        example_ = example;
        length_ = tree_.length(example);
        const std::size_t size = length_ * n_;
        const ScoreView own = tree_.view_of(example, from, view);
        node_ = own.own[0];
        edges_ = tree_.options_.with_edges ? own.own[1] : nullptr;
        if (view.shared != shared_ || view.inverse_temperature != factor_) {
            shared_ = view.shared;
            factor_ = view.inverse_temperature;
            read_shared();
        }
        b_.require(std::max<std::size_t>(size, 1));
        message_.require(std::max<std::size_t>(size, 1));
        bad_ = bad_shared_;
        total_ = 0.0;
    }
    // Reads shared scores anew the next time.
    void forget() { factor_ = 0.0; }
    std::size_t node_at(std::size_t place) const {
        return static_cast<std::size_t>(tree_.order_[tree_.first(example_) + place]);
    }
    std::int32_t parent(std::size_t t) const { return tree_.parents_[tree_.first(example_) + t]; }
    double* b(std::size_t t) { return b_.data() + t * n_; }
    double* message(std::size_t t) { return message_.data() + t * n_; }
    double total() const { return total_; }
    Status status() const {
        if (bad_ || !(total_ < kInfinity)) return Status::bad_number;
        return total_ > -kInfinity ? Status::ok : Status::impossible;
    }

    // The scores of an edge [K][K], times the factor.
    const double* edge(std::size_t t) {
        const double* table = shared_scores_.data() + tree_.type_of(tree_.first(example_) + t) * n_ * n_;
        if (!edges_) return table;
        double* own = edge_scores_.require(n_ * n_);
        for (std::size_t j = 0; j < n_ * n_; ++j) {
            own[j] = table[j] + factor_ * edges_[t * n_ * n_ + j];
            bad_ |= !(own[j] < kInfinity);
        }
        return own;
    }
    const double* root() const { return roots_.data(); }

    // From the leaves to the roots: `pull(t, edge, b, message)` makes the message of a node. Roots have theirs added.
    template <class Pull>
    void up(Pull pull, bool sums) {
        for (std::size_t t = 0; t < length_; ++t)
            for (std::size_t k = 0; k < n_; ++k) {
                b(t)[k] = factor_ * node_[t * n_ + k];
                bad_ |= !(b(t)[k] < kInfinity);
            }
        for (std::size_t place = length_; place-- > 0;) {
            const std::size_t t = node_at(place);
            if (parent(t) < 0) {
                for (std::size_t k = 0; k < n_; ++k) b(t)[k] += roots_.data()[k];
                total_ += sums ? soften(b(t), n_, row_.require(n_)) : *std::max_element(b(t), b(t) + n_);
                continue;
            }
            pull(t, edge(t), b(t), message(t));
            double* above = b(static_cast<std::size_t>(parent(t)));
            for (std::size_t a = 0; a < n_; ++a) above[a] += message(t)[a];
        }
    }
    void up_max() {
        up(
            [&](std::size_t, const double* table, const double* below, double* out) {
                for (std::size_t a = 0; a < n_; ++a) {
                    double best = -kInfinity;
                    for (std::size_t k = 0; k < n_; ++k) best = std::max(best, table[a * n_ + k] + below[k]);
                    out[a] = best;
                }
            },
            false);
    }
    void up_sum() {
        up(
            [&](std::size_t t, const double* table, const double* below, double* out) {
                const double highest = exponentials(below);
                const Exponentials edge = exponentiated(t, table);
                for (std::size_t a = 0; a < n_; ++a) {
                    const double sum = dot(edge.values + a * n_);
                    if (sum > kSmallSum) {
                        out[a] = std::log(sum) + highest + edge.shift;
                        continue;
                    }
                    double* row = row_.require(2 * n_);
                    for (std::size_t k = 0; k < n_; ++k) row[k] = table[a * n_ + k] + below[k];
                    out[a] = soften(row, n_, row + n_);
                }
            },
            true);
    }

    // From the roots to the leaves, after up_sum: `use(t, a, share)` sees the distribution [K] of node t given the
    // label a of its parent, and for a root with a = 0 its own.
    template <class Use>
    void down(Use use) {
        for (std::size_t place = 0; place < length_; ++place) {
            const std::size_t t = node_at(place);
            double* share = share_.require(2 * n_);
            if (parent(t) < 0) {
                soften(b(t), n_, share);
                use(t, std::size_t{0}, share);
                continue;
            }
            const double* table = edge(t);
            exponentials(b(t));
            const Exponentials edge = exponentiated(t, table);
            for (std::size_t a = 0; a < n_; ++a) {
                double sum = 0.0;
                for (std::size_t k = 0; k < n_; ++k) sum += share[k] = edge.values[a * n_ + k] * x_.data()[k];
                if (sum > kSmallSum) {
                    for (std::size_t k = 0; k < n_; ++k) share[k] /= sum;
                } else {
                    for (std::size_t k = 0; k < n_; ++k) share[n_ + k] = table[a * n_ + k] + b(t)[k];
                    soften(share + n_, n_, share);
                }
                use(t, a, share);
            }
        }
    }

  private:
    struct Exponentials {
        const double* values;
        double shift;
    };
    // Of an edge's table: those that all edges of a type share are kept.
    Exponentials exponentiated(std::size_t t, const double* table) {
        const std::size_t type = tree_.type_of(tree_.first(example_) + t);
        if (!edges_) return {shared_exponentials_.data() + type * n_ * n_, shifts_[type]};
        double* out = edge_exponentials_.require(n_ * n_);
        return {out, exponentiate(table, out)};
    }
    double exponentiate(const double* table, double* out) const {
        const double highest = *std::max_element(table, table + n_ * n_);
        const double shift = highest > -kInfinity ? highest : 0.0;
        for (std::size_t j = 0; j < n_ * n_; ++j) out[j] = exp_or_zero(table[j] - shift);
        return shift;
    }
    // x_ = exp(scores - the highest), which is returned.
    double exponentials(const double* scores) {
        const double highest = *std::max_element(scores, scores + n_);
        const double shift = highest > -kInfinity ? highest : 0.0;
        double* x = x_.require(n_);
        for (std::size_t k = 0; k < n_; ++k) x[k] = exp_or_zero(scores[k] - shift);
        return shift;
    }
    double dot(const double* row) const {
        double sum = 0.0;
        for (std::size_t k = 0; k < n_; ++k) sum += row[k] * x_.data()[k];
        return sum;
    }
    void read_shared() {
        const std::size_t n_pairs = tree_.options_.n_types * n_ * n_;
        bad_shared_ = false;
        const auto read = [&](const double* scores, const double* limits, std::size_t size, double* out) {
            for (std::size_t j = 0; j < size; ++j) {
                out[j] = factor_ * ((scores ? scores[j] : 0.0) + (limits ? limits[j] : 0.0));
                bad_shared_ |= !(out[j] < kInfinity);
            }
        };
        read(shared_, tree_.options_.limits, n_pairs, shared_scores_.require(n_pairs));
        const bool with_roots = tree_.options_.with_roots && shared_;
        read(with_roots ? shared_ + n_pairs : nullptr, tree_.options_.root_limits, n_, roots_.require(n_));
        shifts_.resize(tree_.options_.n_types);
        double* out = shared_exponentials_.require(n_pairs);
        for (std::size_t type = 0; type < shifts_.size(); ++type)
            shifts_[type] = exponentiate(shared_scores_.data() + type * n_ * n_, out + type * n_ * n_);
    }

    const TreeStructure& tree_;
    std::size_t n_, example_ = 0, length_ = 0;
    const double *node_ = nullptr, *edges_ = nullptr, *shared_ = nullptr;
    double factor_ = 0.0, total_ = 0.0;
    bool bad_ = false, bad_shared_ = false;
    std::vector<double> shifts_;
    Buffer b_, message_, shared_scores_, shared_exponentials_, roots_, edge_scores_, edge_exponentials_, x_, row_,
        share_;
};

}  // namespace dualfield
