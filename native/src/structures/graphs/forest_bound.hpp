// Tree-reweighted bounds of one graph (Wainwright et al. 2005, Kolmogorov 2006).
//
// The edges are dealt out to N forests, forests.hpp says how, and each forest has a share of the node scores, theta_f,
// with mean theta, and N times the scores of its edges. Then for sums and for maxima alike
//
//   M(theta) <= U = (1/N) sum_f M(theta_f),
//
// and for sums the least U is the maximum over the local polytope of
//
//   <theta, mu> + H_L(mu),      H_L = sum_v H_v - (1/N) sum_e I_e  >=  H.
//
// A visit of a node gives its copies in all forests the mean of their beliefs: for sums this minimises U over the
// shares of this node, for maxima U does not grow. It needs messages from all sides, and the visits before it have
// changed those on the way from there only. So every tree has a place where all messages are right, and walks with the
// visits: one step on each path of a grid, all steps of a tree that is visited depth first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../flush.hpp"
#include "dualfield/core/buffer.hpp"
#include "dualfield/core/layout.hpp"
#include "dualfield/vector/routines.hpp"
#include "forests.hpp"

namespace dualfield {

class ForestBound {
  public:
    // nodes [n][K], pairs [n_tables][K][K], the label first that the first node of an edge has; table_of [E]: which of
    // them an edge has, null for one each. All must stay. Pairs are finite.
    struct Scores {
        const double *nodes, *pairs;
        const std::int32_t* table_of;
        std::size_t n_tables;
    };
    template <bool sums>
    void begin(const Forests& forests, std::size_t n_labels, const Scores& scores) {
        forests_ = &forests;
        k_ = n_labels;
        scores_ = scores;
        const std::size_t n = forests.n_nodes;
        scale_ = static_cast<double>(forests.count);
        part_ = 1.0 / scale_;
        read_pairs<sums>();
        shares_.require(std::max<std::size_t>(forests.count * n * k_, 1));
        for (std::size_t f = 0; f < forests.count; ++f) std::copy_n(scores.nodes, n * k_, share(f, 0));
        messages_.require(std::max<std::size_t>(forests.ends.size() * k_, 1));
        constants_.assign(forests.ends.size(), 0.0);
        const std::size_t width = padded(k_);
        for (Buffer* buffer : {&cavity_, &mean_, &x_, &row_, &column_}) buffer->require(2 * width);
        std::fill_n(cavity_.data() + k_, width - k_, -kInfinity);
        place_ = forests.roots;
        for (const std::int32_t arc : forests.rising) send<sums>(index(arc));
    }

    // To the last node of the order, and back; U after it is bound(). For maxima the labels [n] are chosen on both
    // ways, each given those chosen before it, and the better ones kept.
    template <bool sums>
    void sweep() {
        const std::vector<std::int32_t>& order = forests_->order;
        if constexpr (!sums) labels_.assign(order.size(), -1);
        for (const std::int32_t v : order) visit<sums>(index(v));
        if constexpr (!sums) keep_labels();
        for (std::size_t at = order.size(); at-- > 0;) visit<sums>(index(order[at]));
        if constexpr (!sums) keep_labels();
    }

    template <bool sums>
    double bound() {
        double total = 0.0;
        for (std::size_t t = 0; t < place_.size(); ++t) {
            const double constant = gather(index(forests_->owner[t]), index(place_[t]), kNone, cavity_.data());
            total +=
                constant + (sums ? log_sum(cavity_.data()) : *std::max_element(cavity_.data(), cavity_.data() + k_));
        }
        return total / scale_;
    }

    // Marginals of sums, exactly in the local polytope: of nodes the means over all forests, of edges those of their
    // forest, rounded to them (Altschuler et al. 2017). Returns <theta, mu> + H_L(mu), which is at most U.
    double repair(double* nodes, double* pairs);

    // The best labelling so far, and its score.
    const std::vector<std::int32_t>& best() const { return best_; }
    double best_score() const { return best_score_; }
    void forget_labels() { best_score_ = -kInfinity; }

  private:
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    static constexpr double kFlush = 1e-299;  // products with what is smaller may be denormal, and slow

    static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
    double* share(std::size_t f, std::size_t v) { return shares_.data() + (f * forests_->n_nodes + v) * k_; }
    double* message(std::size_t arc) { return messages_.data() + arc * k_; }
    std::size_t table_of(std::size_t edge) const { return scores_.table_of ? index(scores_.table_of[edge]) : edge; }
    const double* scaled(std::size_t edge) const { return scaled_.data() + table_of(edge) * k_ * k_; }
    std::size_t n_edges() const { return forests_->ends.size() / 2; }

    double log_sum(const double* scores) const {
        const double top = *std::max_element(scores, scores + k_);
        if (!(top > -kInfinity)) return top;
        double sum = 0.0;
        for (std::size_t k = 0; k < k_; ++k) sum += exp_or_zero(scores[k] - top);
        return top + std::log(sum);
    }

    // N times the scores of pairs, and for sums their exponentials divided by the largest, in padded rows for messages
    // along the edge and in columns for those back.
    template <bool sums>
    void read_pairs() {
        const std::size_t size = k_ * k_, width = padded(k_), rows = k_ * width;
        double* scaled = scaled_.require(std::max<std::size_t>(scores_.n_tables * size, 1));
        tops_.resize(scores_.n_tables);
        for (std::size_t j = 0; j < scores_.n_tables * size; ++j) scaled[j] = scale_ * scores_.pairs[j];
        if constexpr (!sums) return;
        double* tables = tables_.require(std::max<std::size_t>(2 * scores_.n_tables * rows, 1));
        std::fill_n(tables, 2 * scores_.n_tables * rows, MessageTask::kPadding);
        double* cells = cells_.require(padded(size));
        for (std::size_t t = 0; t < scores_.n_tables; ++t) {
            const double* own = scaled + t * size;
            double *along = tables + t * rows, *back = tables + (scores_.n_tables + t) * rows;
            tops_[t] = *std::max_element(own, own + size);
            std::copy_n(own, size, cells);
            std::fill_n(cells + size, padded(size) - size, -kInfinity);
            routines().exponentials(cells, tops_[t], padded(size), cells);
            for (std::size_t a = 0; a < k_; ++a)
                for (std::size_t b = 0; b < k_; ++b) {
                    const double factor = cells[a * k_ + b] < kFlush ? 0.0 : cells[a * k_ + b];
                    along[a * width + b] = back[b * width + a] = factor;
                }
        }
    }

    // What a node of a forest and all its neighbours there say, but the one whose arc is left out; returns the
    // constants that were taken out of their messages.
    double gather(std::size_t f, std::size_t v, std::size_t left_out, double* out) {
        std::copy_n(share(f, v), k_, out);
        double constant = 0.0;
        for (const std::int32_t arc : forests_->into(f, v)) {
            if (index(arc) == left_out) continue;
            const double* from = message(index(arc));
            for (std::size_t k = 0; k < k_; ++k) out[k] += from[k];
            constant += constants_[index(arc)];
        }
        return constant;
    }

    // The message over an arc, highest entry 0.
    template <bool sums>
    void send(std::size_t arc) {
        const std::size_t edge = arc / 2, f = index(forests_->forest_of[edge]), from = index(forests_->ends[arc ^ 1]);
        double *c = cavity_.data(), *out = message(arc);
        double constant = gather(f, from, arc ^ 1, c);
        const bool is_back = arc % 2 == 1;
        if constexpr (sums) {
            const std::size_t table = table_of(edge) + (is_back ? scores_.n_tables : 0);
            MessageTask task{k_, c, tables_.data() + table * k_ * padded(k_), x_.data(), row_.data(), out};
            if (routines().send_sums(task)) {
                constants_[arc] = constant + task.shift + tops_[table_of(edge)] + task.highest;
                return;
            }
            for (std::size_t k = 0; k < k_; ++k) out[k] = log_product(edge, c, is_back, k);
        } else {
            maximise(scaled(edge), c, is_back, out);
        }
        const double base = *std::max_element(out, out + k_);
        if (base > -kInfinity) {
            for (std::size_t k = 0; k < k_; ++k) out[k] -= base;
            constant += base;
        }
        constants_[arc] = constant;
    }
    void maximise(const double* table, const double* c, bool is_back, double* out) const {
        std::fill_n(out, k_, -kInfinity);
        for (std::size_t a = 0; a < k_; ++a)
            for (std::size_t b = 0; b < k_; ++b) {
                double& to = is_back ? out[a] : out[b];
                to = std::max(to, table[a * k_ + b] + (is_back ? c[b] : c[a]));
            }
    }
    // One entry of a message by logarithms, where products are too small.
    double log_product(std::size_t edge, const double* c, bool is_back, std::size_t k) {
        double* terms = x_.data();
        const double* table = scaled(edge);
        for (std::size_t j = 0; j < k_; ++j) terms[j] = c[j] + (is_back ? table[k * k_ + j] : table[j * k_ + k]);
        return log_sum(terms);
    }

    // All messages of the tree of a node become right there.
    template <bool sums>
    void walk_to(std::size_t f, std::size_t v) {
        const std::size_t row = f * forests_->n_nodes;
        std::int32_t& place = place_[index(forests_->tree[row + v])];
        down_.clear();
        std::size_t a = index(place), b = v;
        while (a != b) {
            if (forests_->depth[row + a] >= forests_->depth[row + b]) {
                const std::size_t arc = index(forests_->up[row + a]);
                send<sums>(arc);
                a = index(forests_->ends[arc]);
            } else {
                const std::int32_t arc = forests_->up[row + b];
                down_.push_back(arc ^ 1);
                b = index(forests_->ends[index(arc)]);
            }
        }
        for (std::size_t at = down_.size(); at-- > 0;) send<sums>(index(down_[at]));
        place = static_cast<std::int32_t>(v);
    }

    template <bool sums>
    void visit(std::size_t v) {
        const double* scores = scores_.nodes + v * k_;
        double *mean = mean_.data(), *said = mean + k_;
        std::copy_n(scores, k_, mean);
        for (std::size_t f = 0; f < forests_->count; ++f) {
            walk_to<sums>(f, v);
            for (const std::int32_t arc : forests_->into(f, v)) {
                const double* from = message(index(arc));
                for (std::size_t k = 0; k < k_; ++k) mean[k] += part_ * from[k];
            }
        }
        if constexpr (!sums) choose_label(v);
        for (std::size_t f = 0; f < forests_->count; ++f) {
            std::fill_n(said, k_, 0.0);
            for (const std::int32_t arc : forests_->into(f, v)) {
                const double* from = message(index(arc));
                for (std::size_t k = 0; k < k_; ++k) said[k] += from[k];
            }
            double* own = share(f, v);
            for (std::size_t k = 0; k < k_; ++k) own[k] = mean[k] - said[k];
        }
    }

    // The best label given those of the neighbours that have one, and what the others say.
    void choose_label(std::size_t v) {
        double* scores = x_.data();
        std::copy_n(scores_.nodes + v * k_, k_, scores);
        for (std::size_t f = 0; f < forests_->count; ++f)
            for (const std::int32_t arc : forests_->into(f, v)) {
                const std::int32_t other = labels_[index(forests_->ends[index(arc ^ 1)])];
                const double *table = scaled(index(arc) / 2), *from = message(index(arc));
                for (std::size_t k = 0; k < k_; ++k) {
                    const double given = other < 0      ? from[k]
                                         : arc % 2 == 1 ? table[k * k_ + index(other)]
                                                        : table[index(other) * k_ + k];
                    scores[k] += part_ * given;
                }
            }
        labels_[v] = static_cast<std::int32_t>(std::max_element(scores, scores + k_) - scores);
    }
    void keep_labels() {
        double score = 0.0;
        for (std::size_t v = 0; v < labels_.size(); ++v) score += scores_.nodes[v * k_ + index(labels_[v])];
        for (std::size_t e = 0; e < n_edges(); ++e) {
            const std::int32_t from = labels_[index(forests_->ends[2 * e + 1])],
                               to = labels_[index(forests_->ends[2 * e])];
            score += scores_.pairs[(table_of(e) * k_ + index(from)) * k_ + index(to)];
        }
        if (score > best_score_ || best_.size() != labels_.size()) {
            best_score_ = score;
            best_ = labels_;
        }
        std::fill(labels_.begin(), labels_.end(), -1);
    }

    // The marginals of an edge in its forest, and rounded to those of its nodes.
    void pair_beliefs(std::size_t edge, double* out);
    void round_to(const double* rows, const double* columns, double* pairs);

    const Forests* forests_ = nullptr;
    std::size_t k_ = 0;
    double scale_ = 1.0, part_ = 1.0;  // N, and 1 / N
    Scores scores_{};
    Buffer scaled_, tables_, shares_, messages_, cavity_, mean_, x_, row_, column_, cells_;
    std::vector<double> tops_, constants_;    // of tables, and of messages
    std::vector<std::int32_t> place_, down_;  // of each tree: where all messages are right
    std::vector<std::int32_t> labels_, best_;
    double best_score_ = -kInfinity;
};

}  // namespace dualfield
