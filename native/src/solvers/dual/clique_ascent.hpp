// Swaps of mass between labellings of trees and graphs with linear scores: the dual point as sparse tables of the
// cliques of junction trees, the weights that belong to it, and the moves.
//
// Two labellings, a better one and one that has mass, differ on some nodes. Those that are in a clique together must
// change together; each set of nodes that hang together so is a move of its own, with a step of its own that is exact
// along its line. mu - delta u(worse) + delta u(better) is a distribution over labellings as long as delta is at most
// the mass of the worse labels in each of the cliques that change: what segments are on chains.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "clique_paths.hpp"
#include "dualfield/core/buffer.hpp"
#include "dualfield/core/memory.hpp"
#include "dualfield/objectives/objective.hpp"
#include "dualfield/regularisers/squared_norm.hpp"
#include "feature_lists.hpp"
#include "parts_of_one.hpp"
#include "segment_swap.hpp"

namespace dualfield {

class CliqueAscent {
  public:
    SolverState flow() const { return flow_.state(); }

  protected:
    using Paths = CliquePaths;

    // The structure must list its junctions.
    CliqueAscent(const Problem& problem, std::size_t n_threads)
        : problem_(problem),
          map_(*problem.scores),
          parts_(problem.structure->parts()),
          mask_(map_.shared_mask()),
          objective_(problem, n_threads),
          block_(problem.structure->block()),
          layout_(problem),
          flow_(problem, layout_),
          n_(problem.n_examples()),
          n_labels_(layout_.n_labels()),
          w_(problem.size(), 0.0),
          mean_(problem.size(), 0.0),
          lists_(problem, w_.data(), mean_.data()),
          shared_change_(parts_.n_shared, 0.0),
          squares_(problem.n_nodes()),
          n_open_(n_, 0),
          better_(problem.longest()),
          worse_(problem.longest()),
          found_(problem.longest()),
          labels_(problem.longest()),
          set_of_(problem.longest()) {
        std::size_t largest = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            if (problem.length(i) > 0 && problem.weights[i] > 0.0) order_.push_back(i);
            largest = std::max(largest, parts_.n_own(i));
        }
        scores_.require(largest + kLanes);
        scratch_.require(map_.scratch_size());
        stamps_.assign(largest, 0);
    }

    // Rows of the flow, of which n_open_ counts those of each example that have more than one entry.
    std::size_t n_rows() const { return layout_.n_cliques(); }

    void visit_support(std::size_t i, int n_repeats, double relaxation) {
        some_.clear();
        const std::size_t begin = layout_.first(i);
        for (std::uint32_t c = 0; c < layout_.count(i); ++c)
            if (is_open(begin + c)) some_.push_back(c);
        if (some_.empty()) return;
        score_support(i);
        for (int repeat = 1; repeat <= n_repeats; ++repeat) {
            paths_.find(flow_, layout_, i, some_, view(i));
            paths_.trace(better_, worse_);
            if (swap_sets(i, repeat == n_repeats ? relaxation : 1.0) == 0.0) break;
        }
    }

    void visit_densely(std::size_t i) {
        map_.score(w_.data(), {i, i + 1}, tables_of_one(parts_, i, scores_.data()), scratch_.data());
        if (problem_.cost) problem_.structure->add_cost(i, problem_.truth(i), problem_.cost, 1.0, scores_.data());
        is_fresh_ = true;
        for (int repeat = 0; repeat < 2; ++repeat) {
            if (block_->best(i, view(i), found_.data()).status != Status::ok)
                throw std::runtime_error(
                    "The scores of an example are not finite any more: the features are too large.");
            some_.resize(layout_.count(i));
            for (std::uint32_t c = 0; c < some_.size(); ++c) some_[c] = c;
            paths_.find(flow_, layout_, i, some_, view(i));
            paths_.trace(better_, worse_);
            std::copy_n(found_.begin(), problem_.length(i), better_.begin());
            if (swap_sets(i, 1.0) == 0.0) break;
        }
        visit_support(i, 3, 1.0);
        passes_ += 1.0 / static_cast<double>(order_.size());
    }

    // The best labelling that has mass, at given scores.
    double support_maximum(Paths& paths, const double*, std::size_t i, const ScoreView& scores) const {
        std::vector<std::uint32_t> all(layout_.count(i));
        for (std::uint32_t c = 0; c < all.size(); ++c) all[c] = c;
        paths.find(flow_, layout_, i, all, scores);
        return paths.maximum();
    }

    double expected_cost() {
        double sum = 0.0;
        for (const std::uint64_t i : order_) {
            if (!problem_.cost) continue;
            double* masses = nodes_.require(problem_.length(i) * n_labels_);
            std::fill_n(masses, problem_.length(i) * n_labels_, 0.0);
            flow_.add_nodes(i, masses);
            sum += problem_.weights[i] * problem_.structure->expected_cost(i, problem_.truth(i), problem_.cost, masses);
        }
        return sum;
    }

    // w from the tables, without what rounding has left in it.
    void rebuild() {
        std::fill(w_.begin(), w_.end(), 0.0);
        lists_.read_again();
        for (const std::uint64_t i : order_) {
            flow_.balance(i);
            for (std::size_t c = layout_.first(i); c < layout_.first(i + 1); ++c)
                flow_.for_difference(i, c, [&](const std::vector<std::uint32_t>& labels, double mass) {
                    add_clique(i, layout_.clique(c), labels, problem_.weights[i] * mass);
                });
        }
        count_open();
        dual_ = expected_cost() - half_square(w_.data());
    }
    void count_open() {
        for (std::size_t i = 0; i < n_; ++i) {
            n_open_[i] = 0;
            for (std::size_t c = layout_.first(i); c < layout_.first(i + 1); ++c) n_open_[i] += is_open(c);
        }
    }
    double half_square(const double* point) const { return dualfield::half_square({point, w_.size()}); }

    void prefetch(std::size_t i, void (FeatureLists::*ask)(std::size_t) const) const {
        for (std::size_t c = layout_.first(i); c < layout_.first(i + 1); ++c)
            if (is_open(c))
                for (const std::int32_t v : layout_.residual(layout_.clique(c)))
                    (lists_.*ask)(problem_.first(i) + static_cast<std::size_t>(v));
    }
    // Once in a while: what has been left behind by dropped labels is scattered over memory.
    void compact() {
        flow_.compact();
        std::vector<std::uint64_t> used;
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t c = layout_.first(i); c < layout_.first(i + 1); ++c) {
                if (!is_open(c)) continue;
                for (const FlowEdge& edge : flow_.edges(c)) {
                    flow_.decode(c, edge, labels_);
                    for_rows_of(i, layout_.clique(c), labels_, [&](std::size_t row, std::uint32_t part) {
                        used.push_back(static_cast<std::uint64_t>(row) << 32 | part);
                    });
                }
            }
        std::sort(used.begin(), used.end());
        lists_.compact([&](std::size_t row, std::uint32_t part) {
            return std::binary_search(used.begin(), used.end(), static_cast<std::uint64_t>(row) << 32 | part);
        });
    }

    const Problem& problem_;
    const ScoreMap& map_;
    const PartLayout& parts_;
    const double* mask_;  // [n_shared]: zero where a part has no weight
    Objective objective_;
    std::unique_ptr<Block> block_;
    CliqueLayout layout_;
    CliqueTables flow_;
    CliquePaths paths_;
    std::size_t n_, n_labels_;
    Aligned<double> w_, mean_;
    FeatureLists lists_;
    std::vector<double> shared_change_;        // [n_shared]: zeros between moves
    std::vector<std::size_t> shared_changed_;  // where it is not
    struct Square {
        std::uint64_t key = 0;
        double square = 0.0;
    };
    Table<Square> squares_;  // [N]: of the last set that began at a node
    std::vector<std::int32_t> n_open_;
    std::vector<std::uint64_t> order_;  // examples that count
    double dual_ = 0.0, passes_ = 0.0;

  private:
    // Nodes that change together, and the cliques that have any of them.
    struct NodeSet {
        std::vector<std::int32_t> nodes;
        std::vector<std::uint32_t> cliques;
    };

    bool is_open(std::size_t c) const { return flow_.edges(c).size() > 1; }
    bool differs(std::int32_t v) const {
        return better_[static_cast<std::size_t>(v)] != worse_[static_cast<std::size_t>(v)];
    }
    bool differs(const CliqueLayout::Factor& factor) const {
        return differs(factor.first) || (factor.second >= 0 && differs(factor.second));
    }
    std::size_t edge_row(std::size_t i, const CliqueLayout::Factor& factor) const {
        return problem_.n_nodes() + parts_.tables[1].first(i) + static_cast<std::size_t>(factor.row);
    }
    double* shared() { return w_.data() + map_.shared_begin(); }
    ScoreView view(std::size_t i) { return view_of_one(parts_, i, {scores_.data(), shared()}); }
    double cost(std::size_t row, std::uint32_t label) const {
        return problem_.cost ? problem_.cost[static_cast<std::size_t>(problem_.labels[row]) * n_labels_ + label] : 0.0;
    }

    // Calls use(row of the feature lists, part) for the own parts of a clique.
    template <class Use>
    void for_rows_of(std::size_t i, const Clique& one, const std::vector<std::uint32_t>& labels, const Use& use) const {
        for (const std::int32_t v : layout_.residual(one))
            use(problem_.first(i) + static_cast<std::size_t>(v), labels[static_cast<std::size_t>(v)]);
        for (const CliqueLayout::Factor& factor : layout_.factors(one))
            if (factor.row >= 0) use(edge_row(i, factor), layout_.part(factor, labels));
    }
    void add_clique(std::size_t i, const Clique& one, const std::vector<std::uint32_t>& labels, double by) {
        for_rows_of(i, one, labels,
                    [&](std::size_t row, std::uint32_t part) { lists_.add(lists_.get(row, part), by); });
        for (const CliqueLayout::Factor& factor : layout_.factors(one)) {
            const std::size_t part = static_cast<std::size_t>(factor.shared) + layout_.part(factor, labels);
            if (mask_[part] != 0.0) shared()[part] += by;
        }
    }
    // Where the score of an own part is in scores_.
    double& score_at(std::size_t i, std::size_t row, std::uint32_t part) {
        if (row < problem_.n_nodes()) return scores_.data()[(row - problem_.first(i)) * n_labels_ + part];
        const std::size_t edge = row - problem_.n_nodes() - parts_.tables[1].first(i);
        return scores_.data()[problem_.length(i) * n_labels_ + edge * n_labels_ * n_labels_ + part];
    }

    // Scores of the own parts of open cliques that have mass, from the weights of now.
    void score_support(std::size_t i) {
        ++stamp_;
        for (const std::uint32_t c : some_)
            for (const FlowEdge& edge : flow_.edges(layout_.first(i) + c)) {
                flow_.decode(layout_.first(i) + c, edge, labels_);
                for_rows_of(i, layout_.clique(layout_.first(i) + c), labels_, [&](std::size_t row, std::uint32_t part) {
                    double& score = score_at(i, row, part);
                    std::uint32_t& stamp = stamps_[static_cast<std::size_t>(&score - scores_.data())];
                    if (stamp == stamp_) return;
                    stamp = stamp_;
                    score = lists_.dot(lists_.get(row, part)) + (row < problem_.n_nodes() ? cost(row, part) : 0.0);
                });
            }
        is_fresh_ = true;
    }

    // Cuts the difference of the two labellings into sets, and swaps each; returns what the dual gains.
    double swap_sets(std::size_t i, double relaxation) {
        n_sets_ = 0;
        for (const std::uint32_t c : some_) {
            const Clique& one = layout_.clique(layout_.first(i) + c);
            std::int32_t found = -1;
            for (const std::int32_t v : layout_.separator(one))
                if (differs(v)) {
                    found = set_of_[static_cast<std::size_t>(v)];
                    break;
                }
            for (const std::int32_t v : layout_.residual(one)) {
                if (!differs(v)) continue;
                if (found < 0) found = begin_set();
                set_of_[static_cast<std::size_t>(v)] = found;
                sets_[static_cast<std::size_t>(found)].nodes.push_back(v);
            }
            if (found >= 0) sets_[static_cast<std::size_t>(found)].cliques.push_back(c);
        }
        double gain = 0.0;
        for (std::size_t s = 0; s < n_sets_; ++s) gain += swap(i, sets_[s], relaxation);
        return gain;
    }
    std::int32_t begin_set() {
        if (n_sets_ == sets_.size()) sets_.emplace_back();
        sets_[n_sets_].nodes.clear();
        sets_[n_sets_].cliques.clear();
        return static_cast<std::int32_t>(n_sets_++);
    }

    // Calls use(row, better part, worse part) for the own parts that change.
    template <class UseRow>
    void for_changed_rows(std::size_t i, const NodeSet& set, const UseRow& use) const {
        for (const std::int32_t v : set.nodes)
            use(problem_.first(i) + static_cast<std::size_t>(v), better_[static_cast<std::size_t>(v)],
                worse_[static_cast<std::size_t>(v)]);
        if (parts_.tables.size() == 1) return;
        for_changed_factors(i, set, [&](const CliqueLayout::Factor& factor) {
            if (factor.row >= 0) use(edge_row(i, factor), layout_.part(factor, better_), layout_.part(factor, worse_));
        });
    }
    template <class UseFactor>
    void for_changed_factors(std::size_t i, const NodeSet& set, const UseFactor& use) const {
        for (const std::uint32_t c : set.cliques)
            for (const CliqueLayout::Factor& factor : layout_.factors(layout_.clique(layout_.first(i) + c)))
                if (differs(factor)) use(factor);
    }

    double swap(std::size_t i, const NodeSet& set, double relaxation) {
        SwapLine line;
        for_changed_rows(i, set, [&](std::size_t row, std::uint32_t better, std::uint32_t worse) {
            if (is_fresh_) {
                line.slope += score_at(i, row, better) - score_at(i, row, worse);
                return;
            }
            lists_.get(row, better, worse, one_, two_);
            line.slope += lists_.dot(one_) - lists_.dot(two_);
            if (row < problem_.n_nodes()) line.slope += cost(row, better) - cost(row, worse);
        });
        gather_shared(i, set);
        for (const std::size_t part : shared_changed_) line.slope += shared_change_[part] * shared()[part];
        double gain = 0.0;
        if (line.slope > kNoSlope) {
            line.square = square_of(i, set);
            gain = move(i, set, line, relaxation);
        }
        for (const std::size_t part : shared_changed_) shared_change_[part] = 0.0;
        return gain;
    }
    // How often the better labelling has each shared part more than the worse one.
    void gather_shared(std::size_t i, const NodeSet& set) {
        shared_changed_.clear();
        const auto change = [&](std::size_t part, double sign) {
            if (mask_[part] == 0.0) return;
            if (shared_change_[part] == 0.0) shared_changed_.push_back(part);
            shared_change_[part] += sign;
        };
        for_changed_factors(i, set, [&](const CliqueLayout::Factor& factor) {
            change(static_cast<std::size_t>(factor.shared) + layout_.part(factor, better_), 1.0);
            change(static_cast<std::size_t>(factor.shared) + layout_.part(factor, worse_), -1.0);
        });
        // One that came back to zero in between is listed twice.
        std::sort(shared_changed_.begin(), shared_changed_.end());
        shared_changed_.erase(std::unique(shared_changed_.begin(), shared_changed_.end()), shared_changed_.end());
    }
    double square_of(std::size_t i, const NodeSet& set) {
        double square = 0.0;
        for (const std::size_t part : shared_changed_) square += shared_change_[part] * shared_change_[part];
        if (set.nodes.size() == 1 && parts_.tables.size() == 1) {
            const auto v = static_cast<std::size_t>(set.nodes[0]);
            lists_.get(problem_.first(i) + v, better_[v], worse_[v], one_, two_);
            return square + one_.square + two_.square;
        }
        // That of own parts depends on the labels alone, and is the same whichever labelling is the better one.
        std::uint64_t key = set.nodes.size();
        const auto first = static_cast<std::size_t>(set.nodes[0]);
        const bool in_order = better_[first] < worse_[first];
        for_changed_rows(i, set, [&](std::size_t row, std::uint32_t better, std::uint32_t worse) {
            const std::uint64_t one = in_order ? better : worse, two = in_order ? worse : better;
            key = multiply_fold(key ^ 0x9e3779b97f4a7c15u ^ row, (one << 32 | two) + 0xbb67ae85u);
        });
        Square& kept = squares_[problem_.first(i) + first];
        if (kept.key == key) return square + kept.square;
        lists_.begin_sum();
        for_changed_rows(i, set, [&](std::size_t row, std::uint32_t better, std::uint32_t worse) {
            lists_.get(row, better, worse, one_, two_);
            lists_.add_to_sum(in_order ? one_ : two_, 1.0);
            lists_.add_to_sum(in_order ? two_ : one_, -1.0);
        });
        kept = {key, lists_.square_of_sum()};
        return square + kept.square;
    }
    double move(std::size_t i, const NodeSet& set, const SwapLine& line, double relaxation) {
        const std::size_t begin = layout_.first(i);
        double step = 1.0;
        for (const std::uint32_t c : set.cliques) {
            const FlowEdge edge = flow_.edge_of(begin + c, worse_);
            step = std::min(step, flow_.mass(begin + c, edge.from, edge.to));
        }
        if (line.square > 0.0) step = std::min(step, relaxation * line.slope / (problem_.weights[i] * line.square));
        if (!(step > 0.0)) return 0.0;
        const double by = problem_.weights[i] * step;
        for_changed_rows(i, set, [&](std::size_t row, std::uint32_t better, std::uint32_t worse) {
            lists_.get(row, better, worse, one_, two_);
            lists_.add(one_, -by);
            lists_.add(two_, by);
            // Only what the row itself has changed: enough to find the next labellings.
            score_at(i, row, better) -= by * one_.square;
            score_at(i, row, worse) += by * two_.square;
        });
        for (const std::size_t part : shared_changed_) shared()[part] -= by * shared_change_[part];
        is_fresh_ = false;
        for (const std::uint32_t c : set.cliques) {
            const bool was_open = is_open(begin + c);
            const FlowEdge from = flow_.edge_of(begin + c, worse_), to = flow_.edge_of(begin + c, better_);
            flow_.add(begin + c, from.from, from.to, -step);
            flow_.add(begin + c, to.from, to.to, step);
            n_open_[i] += static_cast<std::int32_t>(is_open(begin + c)) - static_cast<std::int32_t>(was_open);
        }
        const double gain = line.gain(by);
        dual_ += gain;
        return gain;
    }

    static constexpr double kNoSlope = 1e-13;
    std::vector<std::uint32_t> better_, worse_;
    std::vector<std::int32_t> found_;
    std::vector<std::uint32_t> labels_;
    std::vector<std::int32_t> set_of_;  // of nodes that differ
    std::vector<NodeSet> sets_;
    std::size_t n_sets_ = 0;
    std::vector<std::uint32_t> some_;  // cliques of the example that is visited
    Buffer scores_, scratch_, nodes_;
    std::vector<std::uint32_t> stamps_;  // of scores_: when they were computed
    std::uint32_t stamp_ = 0;
    FeatureLists::List one_{}, two_{};
    bool is_fresh_ = false;  // whether scores_ are those of w: until the first swap after they were computed
};

}  // namespace dualfield
