// Swaps of mass between labellings: the dual point as a sparse flow, the weights that belong to it, and the moves.
// What the moves are and why is said in flow_swap.cpp, which decides who is visited when.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "dualfield/core/memory.hpp"
#include "dualfield/objectives/objective.hpp"
#include "dualfield/solvers/solver_state.hpp"
#include "dualfield/structures/chain.hpp"
#include "dualfield/structures/chain_block.hpp"
#include "dualfield/text/vocabulary.hpp"
#include "feature_lists.hpp"
#include "flow_paths.hpp"
#include "sparse_flow.hpp"

namespace dualfield {

class FlowAscent {
  public:
    SolverState flow() const {
        std::vector<std::uint64_t> counts, labels;
        std::vector<double> masses;
        for (std::size_t row = 0; row < flow_.n_rows(); ++row) {
            counts.push_back(flow_.edges(row).size());
            for (const FlowEdge& edge : flow_.edges(row)) {
                labels.push_back(edge.from);
                labels.push_back(edge.to);
                masses.push_back(edge.mass);
            }
        }
        return {
            {"edge_counts", std::move(counts)}, {"edge_labels", std::move(labels)}, {"edge_masses", std::move(masses)}};
    }

  protected:
    // The structure must be a chain of order 1 without own edges.
    FlowAscent(const Problem& problem, std::size_t n_threads)
        : problem_(problem),
          chain_(*problem.structure->chain()),
          map_(*problem.scores),
          objective_(problem, n_threads),
          block_(chain_.topology(), chain_.start_limits(), chain_.stop_limits()),
          flow_(problem.n_nodes()),
          n_(problem.n_examples()),
          n_labels_(chain_.n_labels()),
          w_(problem.size(), 0.0),
          mean_(problem.size(), 0.0),
          lists_(problem, w_.data(), mean_.data()),
          clique_change_(checked_product(n_labels_, n_labels_), 0.0),
          squares_(problem.n_nodes()),
          n_open_(n_, 0) {
        std::size_t longest = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            longest = std::max(longest, problem.length(i));
            if (problem.length(i) > 0 && problem.weights[i] > 0.0) order_.push_back(i);
        }
        scores_.require(checked_product(longest, n_labels_) + kLanes);
        scratch_.require(map_.scratch_size());
        best_labels_.resize(longest);
        worst_labels_.resize(longest);
    }

    void begin_at_truth() {
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t t = 0; t < problem_.length(i); ++t)
                flow_.add(problem_.first(i) + t, label_before(i, t), truth(i, t), 1.0);
    }

    std::uint32_t truth(std::size_t i, std::size_t t) const {
        return static_cast<std::uint32_t>(problem_.labels[problem_.first(i) + t]);
    }
    std::uint32_t label_before(std::size_t i, std::size_t t) const { return t == 0 ? 0 : truth(i, t - 1); }
    double cost(std::size_t row, std::size_t label) const {
        return problem_.cost ? problem_.cost[static_cast<std::size_t>(problem_.labels[row]) * n_labels_ + label] : 0.0;
    }
    std::size_t clique_place(std::uint32_t from, std::uint32_t to) const {
        return clique_begin() + from * n_labels_ + to;
    }
    bool has_weight(std::size_t place) const { return map_.shared_mask()[place - clique_begin()] != 0.0; }

    // Slope along the line of a swap, and the square of its direction in the space of weights.
    struct Line {
        double slope = 0.0, square = 0.0;
    };

    // The difference of the scores at a node, with what w has now; the lists are left in one_ and two_.
    double node_slope(std::size_t row, std::size_t t) {
        const std::uint32_t better = best_labels_[t], worse = worst_labels_[t];
        lists_.get(row, better, worse, one_, two_);
        if (is_fresh_) return scores_.data()[t * n_labels_ + better] - scores_.data()[t * n_labels_ + worse];
        return cost(row, better) - cost(row, worse) + lists_.dot(one_) - lists_.dot(two_);
    }

    // The labellings differ at node u only. The weights that change are in one_, two_ and cliques_.
    Line measure_one(std::size_t first, std::size_t length, std::size_t u) {
        const std::uint32_t better = best_labels_[u], worse = worst_labels_[u];
        const double slope = node_slope(first + u, u);
        Line line{slope, one_.square + two_.square};
        n_cliques_changed_ = 0;
        const auto change = [&](std::uint32_t from, std::uint32_t to, double sign) {
            const std::size_t place = clique_place(from, to);
            if (!has_weight(place)) return;
            for (std::size_t c = 0; c < n_cliques_changed_; ++c)
                if (cliques_[c].place == place) {
                    cliques_[c].count += sign;
                    return;
                }
            cliques_[n_cliques_changed_++] = {place, sign};
        };
        if (u > 0) {
            change(best_labels_[u - 1], better, 1.0);
            change(best_labels_[u - 1], worse, -1.0);
        }
        if (u + 1 < length) {
            change(better, best_labels_[u + 1], 1.0);
            change(worse, best_labels_[u + 1], -1.0);
        }
        for (std::size_t c = 0; c < n_cliques_changed_; ++c) {
            line.slope += cliques_[c].count * w_[cliques_[c].place];
            line.square += cliques_[c].count * cliques_[c].count;
        }
        return line;
    }
    void move_one(double step) {
        lists_.add(one_, -step);
        lists_.add(two_, step);
        for (std::size_t c = 0; c < n_cliques_changed_; ++c) w_[cliques_[c].place] -= step * cliques_[c].count;
    }

    // The same for longer segments [u, end), where a weight may change at several nodes.
    Line measure_many(std::size_t first, std::size_t length, std::size_t u, std::size_t end) {
        double slope = 0.0;
        for (std::size_t t = u; t < end; ++t) {
            slope += node_slope(first + t, t);
        }
        for_cliques(length, u, end, [&](std::size_t place, double sign) { slope += sign * w_[place]; });
        // The square depends on the labels alone. Most segments that begin at a node are the same ones again.
        const std::uint64_t key = segment_key(length, u, end);
        Square& kept = squares_[first + u];
        if (kept.key != key) kept = {key, square_of_segment(first, length, u, end)};
        return {slope, kept.square};
    }
    double square_of_segment(std::size_t first, std::size_t length, std::size_t u, std::size_t end) {
        // In the order of the labels, whichever is the better one: rounded alike each time it is computed.
        const bool in_order = best_labels_[u] < worst_labels_[u];
        lists_.begin_sum();
        for (std::size_t t = u; t < end; ++t) {
            lists_.get(first + t, best_labels_[t], worst_labels_[t], one_, two_);
            lists_.add_to_sum(in_order ? one_ : two_, 1.0);
            lists_.add_to_sum(in_order ? two_ : one_, -1.0);
        }
        double square = lists_.square_of_sum();
        changed_cliques_.clear();
        for_cliques(length, u, end, [&](std::size_t place, double sign) {
            clique_change_[place - clique_begin()] += sign;
            changed_cliques_.push_back(place);
        });
        for (const std::size_t place : changed_cliques_) {
            double& change = clique_change_[place - clique_begin()];
            square += change * change;
            change = 0.0;
        }
        return square;
    }
    void move_many(std::size_t first, std::size_t length, std::size_t u, std::size_t end, double step) {
        for (std::size_t t = u; t < end; ++t) {
            lists_.get(first + t, best_labels_[t], worst_labels_[t], one_, two_);
            lists_.add(one_, -step);
            lists_.add(two_, step);
        }
        for_cliques(length, u, end, [&](std::size_t place, double sign) { w_[place] -= step * sign; });
    }
    // Calls use(place, sign) for the cliques that touch the segment, as far as they have a weight.
    template <class Use>
    void for_cliques(std::size_t length, std::size_t u, std::size_t end, const Use& use) const {
        for (std::size_t t = std::max<std::size_t>(u, 1); t <= end && t < length; ++t) {
            const std::size_t better = clique_place(best_labels_[t - 1], best_labels_[t]);
            const std::size_t worse = clique_place(worst_labels_[t - 1], worst_labels_[t]);
            if (has_weight(better)) use(better, 1.0);
            if (has_weight(worse)) use(worse, -1.0);
        }
    }
    // The same number for the same two labellings of a segment and its neighbours, whichever of them is the better one.
    std::uint64_t segment_key(std::size_t length, std::size_t u, std::size_t end) const {
        const bool in_order = best_labels_[u] < worst_labels_[u];
        const auto& one = in_order ? best_labels_ : worst_labels_;
        const auto& two = in_order ? worst_labels_ : best_labels_;
        std::uint64_t key = end - u;
        for (std::size_t t = u > 0 ? u - 1 : u; t <= end && t < length; ++t)
            key = multiply_fold(key ^ 0x9e3779b97f4a7c15u,
                                (static_cast<std::uint64_t>(one[t]) << 32 | two[t]) + 0xbb67ae85u);
        return key;
    }

    // Moves mass from the worst labels of the nodes [u, end) to the best ones; returns what the dual gains. At the
    // nodes before and after the two labellings agree.
    double swap(std::size_t i, std::size_t u, std::size_t end, double relaxation) {
        const std::size_t first = problem_.first(i), length = problem_.length(i), last = std::min(end, length - 1);
        const auto before = [](const std::vector<std::uint32_t>& labels, std::size_t t) {
            return t == 0 ? 0u : labels[t - 1];
        };
        const bool one = end - u == 1;
        const Line line = one ? measure_one(first, length, u) : measure_many(first, length, u, end);
        double gain = 0.0;
        if (line.slope > kNoSlope) {
            const double weight = problem_.weights[i];
            double step = 1.0;
            for (std::size_t t = u; t <= last; ++t)
                step = std::min(step, flow_.mass(first + t, before(worst_labels_, t), worst_labels_[t]));
            if (line.square > 0.0) step = std::min(step, relaxation * line.slope / (weight * line.square));
            if (step > 0.0) {
                const double by = weight * step;
                if (one)
                    move_one(by);
                else
                    move_many(first, length, u, end, by);
                is_fresh_ = false;
                gain = by * (line.slope - 0.5 * by * line.square);
                for (std::size_t t = u; t <= last; ++t) {
                    flow_.add(first + t, before(worst_labels_, t), worst_labels_[t], -step);
                    flow_.add(first + t, before(best_labels_, t), best_labels_[t], step);
                    refresh(i, first + t);
                }
                // Only what the node itself has changed: enough to find the next paths.
                for (std::size_t t = u; t < end; ++t) {
                    if (!one) lists_.get(first + t, best_labels_[t], worst_labels_[t], one_, two_);
                    scores_.data()[t * n_labels_ + best_labels_[t]] -= by * one_.square;
                    scores_.data()[t * n_labels_ + worst_labels_[t]] += by * two_.square;
                }
            }
        }
        dual_ += gain;
        return gain;
    }

    // Swaps all segments of [from, to) on which the two labellings differ.
    double swap_segments(std::size_t i, std::size_t from, std::size_t to, double relaxation) {
        double gain = 0.0;
        for (std::size_t u = from; u < to; ++u) {
            if (best_labels_[u] == worst_labels_[u]) continue;
            std::size_t end = u + 1;
            while (end < to && best_labels_[end] != worst_labels_[end]) ++end;
            gain += swap(i, u, end, relaxation);
            u = end;
        }
        return gain;
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
        if (t > 0) best_labels_[t - 1] = worst_labels_[t - 1] = edges[0].from;
        if (has_next) best_labels_[t + 1] = worst_labels_[t + 1] = flow_.edges(row + 1)[0].to;
        double totals[2];
        for (int k = 0; k < 2; ++k) {
            totals[k] = cost(row, labels[k]) + lists_.dot(lists_.get(row, labels[k]));
            scores_.data()[t * n_labels_ + labels[k]] = totals[k];
            if (t > 0) totals[k] += w_[clique_place(edges[0].from, labels[k])];
            if (has_next) totals[k] += w_[clique_place(labels[k], best_labels_[t + 1])];
        }
        is_fresh_ = true;
        const int better = totals[1] > totals[0];
        best_labels_[t] = labels[better];
        worst_labels_[t] = labels[1 - better];
        swap(i, t, t + 1, relaxation);
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
            paths_.trace(best_labels_, worst_labels_);
            if (from > 0) best_labels_[from - 1] = worst_labels_[from - 1] = flow_.edges(first + from)[0].from;
            if (to < length) best_labels_[to] = worst_labels_[to] = flow_.edges(first + to)[0].to;
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
            paths_.trace(best_labels_, worst_labels_);
            std::copy(viterbi_.begin(), viterbi_.end(), best_labels_.begin());
            if (swap_segments(i, 0, length, 1.0) == 0.0) break;
        }
        visit_support(i, 3, 1.0);
        passes_ += 1.0 / static_cast<double>(order_.size());
    }

    double expected_cost() const {
        double sum = 0.0;
        for (const std::uint64_t i : order_) {
            double own = 0.0;
            for (std::size_t row = problem_.first(i); row < problem_.first(i + 1); ++row)
                for (const FlowEdge& edge : flow_.edges(row)) own += edge.mass * cost(row, edge.to);
            sum += problem_.weights[i] * own;
        }
        return sum;
    }

    // w from the flow, without what rounding has left in it.
    void rebuild() {
        std::fill(w_.begin(), w_.end(), 0.0);
        lists_.read_again();
        for (const std::uint64_t i : order_) {
            flow_.balance(problem_.first(i), problem_.length(i));
            for (std::size_t t = 0; t < problem_.length(i); ++t) {
                const std::size_t row = problem_.first(i) + t;
                const auto edges = flow_.edges(row);
                if (edges.size() == 1 && edges[0].to == truth(i, t) && edges[0].from == label_before(i, t)) continue;
                for (const FlowEdge& edge : edges) add_edge(i, t, edge.from, edge.to, -edge.mass);
                add_edge(i, t, label_before(i, t), truth(i, t), 1.0);
            }
        }
        dual_ = expected_cost() - half_square(w_.data());
    }
    void add_edge(std::size_t i, std::size_t t, std::uint32_t from, std::uint32_t to, double mass) {
        const double by = problem_.weights[i] * mass;
        lists_.add(lists_.get(problem_.first(i) + t, to), by);
        if (t == 0) return;
        const std::size_t place = clique_place(from, to);
        if (has_weight(place)) w_[place] += by;
    }

    void read_flow(const SolverState& state) {
        const StateReader reader(state);
        std::vector<std::uint64_t> counts(problem_.n_nodes());
        reader("edge_counts", counts);
        const std::size_t size = reader.find<double>("edge_masses").size();
        std::vector<double> masses(size);
        reader("edge_masses", masses);
        std::vector<std::uint64_t> labels(2 * size);
        reader("edge_labels", labels);
        std::size_t at = 0;
        for (std::size_t row = 0; row < counts.size(); ++row) {
            if (counts[row] > size - at) throw StateError("edge_counts do not add up to the number of edges");
            for (const std::size_t end = at + counts[row]; at < end; ++at) {
                if (labels[2 * at] >= n_labels_ || labels[2 * at + 1] >= n_labels_ || !(masses[at] > 0.0))
                    throw StateError("the flow has an edge of an unknown label or without mass");
                flow_.add(row, static_cast<std::uint32_t>(labels[2 * at]),
                          static_cast<std::uint32_t>(labels[2 * at + 1]), masses[at]);
            }
        }
        if (at != size) throw StateError("edge_counts do not add up to the number of edges");
        check_flow();
    }
    // The flow must be a distribution over labellings: what comes into a label leaves it, and all of it is 1.
    void check_flow() const {
        std::vector<double> coming(n_labels_), leaving(n_labels_);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t t = 0; t < problem_.length(i); ++t) {
                const auto edges = flow_.edges(problem_.first(i) + t);
                double rest = 1.0;
                std::fill(leaving.begin(), leaving.end(), 0.0);
                for (const FlowEdge& edge : edges) {
                    leaving[edge.from] += edge.mass;
                    rest -= edge.mass;
                }
                bool is_kept = std::abs(rest) <= kLostMass;
                for (std::size_t k = 0; t > 0 && k < n_labels_; ++k)
                    is_kept = is_kept && std::abs(coming[k] - leaving[k]) <= kLostMass;
                if (!is_kept) throw StateError("the flow is no distribution over labellings");
                std::fill(coming.begin(), coming.end(), 0.0);
                for (const FlowEdge& edge : edges) coming[edge.to] += edge.mass;
            }
    }

    double half_square(const double* point) const {
        double sum = 0.0;
        for (std::size_t j = 0; j < w_.size(); ++j) sum += point[j] * point[j];
        return 0.5 * sum;
    }
    // In the vector of weights.
    std::size_t clique_begin() const { return map_.shared_begin(); }
    std::size_t start_begin() const { return map_.shared_begin() + chain_.start_begin(); }
    std::size_t stop_begin() const { return map_.shared_begin() + chain_.stop_begin(); }
    const double* cliques() const { return w_.data() + clique_begin(); }

    const Problem& problem_;
    const ChainStructure& chain_;
    const ScoreMap& map_;
    Objective objective_;
    ChainBlock block_;
    SparseFlow flow_;
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
    std::vector<std::uint32_t> best_labels_, worst_labels_;
    Buffer scores_, scratch_;
    FeatureLists::List one_{}, two_{};
    struct CliqueChange {
        std::size_t place;
        double count;
    } cliques_[4] = {};
    std::vector<std::size_t> changed_cliques_;
    std::size_t n_cliques_changed_ = 0;
    bool is_fresh_ = false;  // whether scores_ are those of w: until the first swap after they were computed
    double dual_ = 0.0, passes_ = 0.0;

  private:
    static constexpr double kNoSlope = 1e-13;
    static constexpr double kLostMass = 1e-6;  // what dropped edges and rounding may add up to
};

}  // namespace dualfield
