// Swaps of mass between labellings of chains with linear scores: the dual point as a sparse flow, the weights that
// belong to it, and the moves. What the moves are and why is said in flow_swap.cpp, which decides who is visited when.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "chain_flow.hpp"
#include "dualfield/core/memory.hpp"
#include "dualfield/objectives/objective.hpp"
#include "dualfield/regularisers/squared_norm.hpp"
#include "dualfield/solvers/solver_state.hpp"
#include "dualfield/structures/chains/chain.hpp"
#include "dualfield/structures/chains/chain_block.hpp"
#include "dualfield/text/vocabulary.hpp"
#include "feature_lists.hpp"
#include "flow_paths.hpp"
#include "segment_swap.hpp"

namespace dualfield {

class FlowAscent {
  public:
    SolverState flow() const { return flow_.state(); }

  protected:
    using Paths = FlowPaths;

    // The structure must be a chain of order 1 without own edges.
    FlowAscent(const Problem& problem, std::size_t n_threads)
        : problem_(problem),
          chain_(*problem.structure->chain()),
          map_(*problem.scores),
          mask_(map_.shared_mask()),
          objective_(problem, n_threads),
          block_(chain_.topology(), chain_.start_limits(), chain_.stop_limits()),
          flow_(problem),
          n_(problem.n_examples()),
          n_labels_(chain_.n_labels()),
          w_(problem.size(), 0.0),
          mean_(problem.size(), 0.0),
          lists_(problem, w_.data(), mean_.data()),
          clique_change_(checked_product(n_labels_, n_labels_), 0.0),
          squares_(problem.n_nodes()),
          n_open_(n_, 0),
          pair_(problem.longest()) {
        for (std::size_t i = 0; i < n_; ++i)
            if (problem.length(i) > 0 && problem.weights[i] > 0.0) order_.push_back(i);
        scores_.require(checked_product(pair_.better.size(), n_labels_) + kLanes);
        scratch_.require(map_.scratch_size());
    }

    double cost(std::size_t row, std::size_t label) const {
        return problem_.cost ? problem_.cost[static_cast<std::size_t>(problem_.labels[row]) * n_labels_ + label] : 0.0;
    }
    std::size_t clique(std::uint32_t from, std::uint32_t to) const { return from * n_labels_ + to; }

    // The difference of the scores at a node, with what w has now; the lists are left in one_ and two_.
    double node_slope(std::size_t row, std::size_t t) {
        const std::uint32_t better = pair_.better[t], worse = pair_.worse[t];
        lists_.get(row, better, worse, one_, two_);
        if (is_fresh_) return scores_.data()[t * n_labels_ + better] - scores_.data()[t * n_labels_ + worse];
        return cost(row, better) - cost(row, worse) + lists_.dot(one_) - lists_.dot(two_);
    }

    // The labellings differ at node u only. The weights that change are in one_, two_ and cliques_.
    SwapLine measure_one(const Segment& segment) {
        const std::size_t u = segment.begin;
        const std::uint32_t better = pair_.better[u], worse = pair_.worse[u];
        const double slope = node_slope(segment.first + u, u);
        SwapLine line{slope, one_.square + two_.square};
        n_cliques_changed_ = 0;
        const auto change = [&](std::uint32_t from, std::uint32_t to, double sign) {
            const std::size_t changed = clique(from, to);
            if (mask_[changed] == 0.0) return;
            for (std::size_t c = 0; c < n_cliques_changed_; ++c)
                if (cliques_[c].clique == changed) {
                    cliques_[c].count += sign;
                    return;
                }
            cliques_[n_cliques_changed_++] = {changed, sign};
        };
        if (u > 0) {
            change(pair_.better[u - 1], better, 1.0);
            change(pair_.better[u - 1], worse, -1.0);
        }
        if (u + 1 < segment.length) {
            change(better, pair_.better[u + 1], 1.0);
            change(worse, pair_.better[u + 1], -1.0);
        }
        for (std::size_t c = 0; c < n_cliques_changed_; ++c) {
            line.slope += cliques_[c].count * cliques()[cliques_[c].clique];
            line.square += cliques_[c].count * cliques_[c].count;
        }
        return line;
    }
    void move_one(double step) {
        lists_.add(one_, -step);
        lists_.add(two_, step);
        for (std::size_t c = 0; c < n_cliques_changed_; ++c) cliques()[cliques_[c].clique] -= step * cliques_[c].count;
    }

    // The same for longer segments, where a weight may change at several nodes.
    SwapLine measure_many(const Segment& segment) {
        double slope = 0.0;
        for (std::size_t t = segment.begin; t < segment.end; ++t) {
            slope += node_slope(segment.first + t, t);
        }
        for_cliques(segment, [&](std::size_t changed, double sign) { slope += sign * cliques()[changed]; });
        // The square depends on the labels alone. Most segments that begin at a node are the same ones again.
        const std::uint64_t key = segment_key(segment);
        Square& kept = squares_[segment.first + segment.begin];
        if (kept.key != key) kept = {key, square_of(segment)};
        return {slope, kept.square};
    }
    double square_of(const Segment& segment) {
        // In the order of the labels, whichever is the better one: rounded alike each time it is computed.
        const bool in_order = pair_.better[segment.begin] < pair_.worse[segment.begin];
        lists_.begin_sum();
        for (std::size_t t = segment.begin; t < segment.end; ++t) {
            lists_.get(segment.first + t, pair_.better[t], pair_.worse[t], one_, two_);
            lists_.add_to_sum(in_order ? one_ : two_, 1.0);
            lists_.add_to_sum(in_order ? two_ : one_, -1.0);
        }
        double square = lists_.square_of_sum();
        for_cliques(segment, [&](std::size_t changed, double sign) { clique_change_[changed] += sign; });
        for_cliques(segment, [&](std::size_t changed, double) {
            square += clique_change_[changed] * clique_change_[changed];
            clique_change_[changed] = 0.0;
        });
        return square;
    }
    void move_many(const Segment& segment, double step) {
        for (std::size_t t = segment.begin; t < segment.end; ++t) {
            lists_.get(segment.first + t, pair_.better[t], pair_.worse[t], one_, two_);
            lists_.add(one_, -step);
            lists_.add(two_, step);
        }
        for_cliques(segment, [&](std::size_t changed, double sign) { cliques()[changed] -= step * sign; });
    }
    template <class Use>
    void for_cliques(const Segment& segment, const Use& use) const {
        pair_.for_cliques(segment, mask_, n_labels_, use);
    }
    // The same number for the same two labellings of a segment and its neighbours, whichever of them is the better one.
    std::uint64_t segment_key(const Segment& segment) const {
        const std::size_t u = segment.begin;
        const bool in_order = pair_.better[u] < pair_.worse[u];
        const auto& one = in_order ? pair_.better : pair_.worse;
        const auto& two = in_order ? pair_.worse : pair_.better;
        std::uint64_t key = segment.end - u;
        for (std::size_t t = u > 0 ? u - 1 : u; t <= segment.last_edge(); ++t)
            key = multiply_fold(key ^ 0x9e3779b97f4a7c15u,
                                (static_cast<std::uint64_t>(one[t]) << 32 | two[t]) + 0xbb67ae85u);
        return key;
    }

    // Moves mass from the worse labels of a segment to the better ones; returns what the dual gains. At the nodes
    // before and after the two labellings agree.
    double swap(std::size_t i, const Segment& segment, double relaxation) {
        const bool one = segment.end - segment.begin == 1;
        const SwapLine line = one ? measure_one(segment) : measure_many(segment);
        const double step = pair_.step(flow_, segment, line, problem_.weights[i], relaxation);
        if (!(step > 0.0)) return 0.0;
        const double by = problem_.weights[i] * step;
        if (one)
            move_one(by);
        else
            move_many(segment, by);
        is_fresh_ = false;
        pair_.move(flow_, segment, step);
        for (std::size_t t = segment.begin; t <= segment.last_edge(); ++t) refresh(i, segment.first + t);
        // Only what the node itself has changed: enough to find the next paths.
        for (std::size_t t = segment.begin; t < segment.end; ++t) {
            if (!one) lists_.get(segment.first + t, pair_.better[t], pair_.worse[t], one_, two_);
            scores_.data()[t * n_labels_ + pair_.better[t]] -= by * one_.square;
            scores_.data()[t * n_labels_ + pair_.worse[t]] += by * two_.square;
        }
        const double gain = line.gain(by);
        dual_ += gain;
        return gain;
    }

    // Swaps all segments of [from, to) on which the two labellings differ.
    double swap_segments(std::size_t i, std::size_t from, std::size_t to, double relaxation) {
        return pair_.for_segments({problem_.first(i), problem_.length(i), from, to},
                                  [&](const Segment& segment) { return swap(i, segment, relaxation); });
    }

    // Keeps count of the nodes of each example that have more than one label.
    void refresh(std::size_t i, std::size_t row) {
        const bool was_open = flow_.n_labels(row) > 1;
        flow_.count_labels(row);
        const bool is_open = flow_.n_labels(row) > 1;
        n_open_[i] += static_cast<std::int32_t>(is_open) - static_cast<std::int32_t>(was_open);
    }
    void count_open() {
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t row = problem_.first(i); row < problem_.first(i + 1); ++row) refresh(i, row);
    }

    // One node with two labels between nodes with one: the better one is known without looking for paths.
    void visit_pair(std::size_t i, std::size_t t, double relaxation) {
        const std::size_t first = problem_.first(i), row = first + t;
        const auto edges = flow_.edges(row);
        const std::uint32_t labels[2] = {edges[0].to, edges[edges[1].to == edges[0].to ? edges.size() - 1 : 1].to};
        const bool has_next = t + 1 < problem_.length(i);
        if (t > 0) pair_.better[t - 1] = pair_.worse[t - 1] = edges[0].from;
        if (has_next) pair_.better[t + 1] = pair_.worse[t + 1] = flow_.edges(row + 1)[0].to;
        double totals[2];
        for (int k = 0; k < 2; ++k) {
            totals[k] = cost(row, labels[k]) + lists_.dot(lists_.get(row, labels[k]));
            scores_.data()[t * n_labels_ + labels[k]] = totals[k];
            if (t > 0) totals[k] += cliques()[clique(edges[0].from, labels[k])];
            if (has_next) totals[k] += cliques()[clique(labels[k], pair_.better[t + 1])];
        }
        is_fresh_ = true;
        const int better = totals[1] > totals[0];
        pair_.better[t] = labels[better];
        pair_.worse[t] = labels[1 - better];
        swap(i, {first, problem_.length(i), t, t + 1}, relaxation);
    }

    void visit_region(std::size_t i, std::size_t from, std::size_t to, int n_repeats, double relaxation) {
        const std::size_t first = problem_.first(i), length = problem_.length(i);
        if (to - from == 1 && flow_.n_labels(first + from) == 2) return visit_pair(i, from, relaxation);
        for (std::size_t t = from; t < to; ++t) {
            const auto edges = flow_.edges(first + t);
            for (std::size_t e = 0; e < edges.size(); ++e) {
                const std::uint32_t label = edges[e].to;
                bool is_new = true;
                for (std::size_t before = 0; before < e; ++before) is_new = is_new && edges[before].to != label;
                if (is_new)
                    scores_.data()[t * n_labels_ + label] =
                        cost(first + t, label) + lists_.dot(lists_.get(first + t, label));
            }
        }
        is_fresh_ = true;
        for (int repeat = 1; repeat <= n_repeats; ++repeat) {
            paths_.find(flow_, first, length, from, to, scores_.data(), cliques(), n_labels_);
            paths_.trace(pair_.better, pair_.worse);
            if (from > 0) pair_.better[from - 1] = pair_.worse[from - 1] = flow_.edges(first + from)[0].from;
            if (to < length) pair_.better[to] = pair_.worse[to] = flow_.edges(first + to)[0].to;
            if (swap_segments(i, from, to, repeat == n_repeats ? relaxation : 1.0) == 0.0) break;
        }
    }

    void visit_support(std::size_t i, int n_repeats, double relaxation) {
        const std::size_t first = problem_.first(i), length = problem_.length(i);
        for (std::size_t t = 0; t < length; ++t) {
            if (flow_.n_labels(first + t) < 2) continue;
            std::size_t end = t + 1;
            while (end < length && flow_.n_labels(first + end) > 1) ++end;
            visit_region(i, t, end, n_repeats, relaxation);
            t = end;
        }
    }

    void visit_densely(std::size_t i) {
        const std::size_t first = problem_.first(i), length = problem_.length(i);
        double* scores = scores_.data();
        map_.score(w_.data(), {i, i + 1}, {scores}, scratch_.data());
        for (std::size_t t = 0; t < length && problem_.cost; ++t)
            for (std::size_t k = 0; k < n_labels_; ++k) scores[t * n_labels_ + k] += cost(first + t, k);
        if (chain_.with_ends())
            for (std::size_t k = 0; k < n_labels_; ++k) {
                scores[k] += w_[start_begin() + k];
                scores[(length - 1) * n_labels_ + k] += w_[stop_begin() + k];
            }
        is_fresh_ = true;
        for (int repeat = 0; repeat < 2; ++repeat) {
            viterbi_.resize(length);
            if (block_.best(scores, length, cliques(), viterbi_.data()).status == Status::bad_number)
                throw std::runtime_error(
                    "The scores of an example are not finite any more: the features are too large.");
            paths_.find(flow_, first, length, 0, length, scores, cliques(), n_labels_);
            paths_.trace(pair_.better, pair_.worse);
            std::copy(viterbi_.begin(), viterbi_.end(), pair_.better.begin());
            if (swap_segments(i, 0, length, 1.0) == 0.0) break;
        }
        visit_support(i, 3, 1.0);
        passes_ += 1.0 / static_cast<double>(order_.size());
    }

    // Rows of the flow, of which n_open_ counts those of each example that have more than one label.
    std::size_t n_rows() const { return problem_.n_nodes(); }

    // Once in a while: what has been left behind by dropped labels is scattered over memory.
    void compact() {
        flow_.compact();
        lists_.compact([&](std::size_t row, std::uint32_t label) {
            const auto edges = flow_.edges(row);
            return flow_.n_labels(row) > 1 &&
                   std::any_of(edges.begin(), edges.end(), [&](const FlowEdge& e) { return e.to == label; });
        });
    }
    void prefetch(std::size_t i, void (FeatureLists::*ask)(std::size_t) const) const {
        for (std::size_t row = problem_.first(i); row < problem_.first(i + 1); ++row)
            if (flow_.n_labels(row) > 1) (lists_.*ask)(row);
    }

    // The best path that has mass, at the weights of a point.
    double support_maximum(Paths& paths, const double* point, std::size_t i, const ScoreView& scores) const {
        const std::size_t length = problem_.length(i);
        if (length == 0) return 0.0;
        paths.find(flow_, problem_.first(i), length, 0, length, scores.own[0], point + clique_begin(), n_labels_,
                   chain_.with_ends() ? point + start_begin() : nullptr,
                   chain_.with_ends() ? point + stop_begin() : nullptr);
        return paths.maximum();
    }

    double expected_cost() const {
        double sum = 0.0;
        for (const std::uint64_t i : order_) sum += problem_.weights[i] * flow_.expected_cost(i);
        return sum;
    }

    // w from the flow, without what rounding has left in it.
    void rebuild() {
        std::fill(w_.begin(), w_.end(), 0.0);
        lists_.read_again();
        for (const std::uint64_t i : order_) {
            flow_.balance(problem_.first(i), problem_.length(i));
            flow_.for_difference(i, [&](std::size_t t, std::uint32_t from, std::uint32_t to, double mass) {
                const double by = problem_.weights[i] * mass;
                lists_.add(lists_.get(problem_.first(i) + t, to), by);
                if (t > 0 && mask_[clique(from, to)] != 0.0) cliques()[clique(from, to)] += by;
            });
        }
        dual_ = expected_cost() - half_square(w_.data());
    }
    double half_square(const double* point) const { return dualfield::half_square({point, w_.size()}); }
    // In the vector of weights.
    std::size_t clique_begin() const { return map_.shared_begin(); }
    std::size_t start_begin() const { return map_.shared_begin() + chain_.start_begin(); }
    std::size_t stop_begin() const { return map_.shared_begin() + chain_.stop_begin(); }
    double* cliques() { return w_.data() + clique_begin(); }

    const Problem& problem_;
    const ChainStructure& chain_;
    const ScoreMap& map_;
    const double* mask_;  // [K][K]: zero where a clique has no weight
    Objective objective_;
    ChainBlock block_;
    ChainFlow flow_;
    FlowPaths paths_;
    std::size_t n_, n_labels_;
    Aligned<double> w_, mean_;
    FeatureLists lists_;
    std::vector<double> clique_change_;
    struct Square {
        std::uint64_t key = 0;
        double square = 0.0;
    };
    Table<Square> squares_;  // [N]: of the last segment that began at a node
    std::vector<std::int32_t> n_open_, viterbi_;
    std::vector<std::uint64_t> order_;  // examples that count
    LabellingPair pair_;
    Buffer scores_, scratch_;
    FeatureLists::List one_{}, two_{};
    struct CliqueChange {
        std::size_t clique;
        double count;
    } cliques_[4] = {};
    std::size_t n_cliques_changed_ = 0;
    bool is_fresh_ = false;  // whether scores_ are those of w: until the first swap after they were computed
    double dual_ = 0.0, passes_ = 0.0;
};

}  // namespace dualfield
