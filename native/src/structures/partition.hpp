// The best labellings of an example, one after another (Lawler 1972). What is left after the best one of a set is cut
// into sets of labellings that agree with it in the nodes before t and differ from it in node t, for every t; each has
// a best one of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dualfield/core/layout.hpp"
#include "dualfield/structures/structure.hpp"

namespace dualfield {

// Best: best(node scores, labels) -> Block::Answer, for scores of the nodes in which labels are forbidden.
template <class Best>
class Partition {
  public:
    // begins [n_nodes + 1]: where the labels of each node begin among the scores of nodes.
    Partition(std::span<const std::size_t> begins, const double* scores, Best best)
        : begins_(begins), scores_(scores), best_(best), node_(begins.back()) {}

    Status begin() {
        Set all;
        const Status status = solve(all);
        if (status == Status::ok) push(std::move(all));
        return status;
    }
    // The next labelling and its score; -1 and minus infinity when there are no more.
    double next(std::int32_t* labels) {
        if (sets_.empty()) {
            std::fill_n(labels, n_nodes(), -1);
            return -kInfinity;
        }
        std::ranges::pop_heap(sets_, is_worse);
        const Set set = std::move(sets_.back());
        sets_.pop_back();
        std::ranges::copy(set.best, labels);
        for (std::size_t t = set.n_fixed; t < n_nodes(); ++t) {
            Set rest;
            rest.best = set.best;
            rest.n_fixed = t;
            if (t == set.n_fixed) rest.excluded = set.excluded;
            rest.excluded.push_back(set.best[t]);
            if (rest.excluded.size() < n_labels(t) && solve(rest) == Status::ok) push(std::move(rest));
        }
        return set.value;
    }

  private:
    // Labellings that begin as `best` does, and have none of the excluded labels after that.
    struct Set {
        std::vector<std::int32_t> best;
        std::size_t n_fixed = 0;
        std::vector<std::int32_t> excluded;
        double value = 0.0;
    };
    static bool is_worse(const Set& a, const Set& b) { return a.value < b.value; }
    std::size_t n_nodes() const { return begins_.size() - 1; }
    std::size_t n_labels(std::size_t node) const { return begins_[node + 1] - begins_[node]; }
    void push(Set&& set) {
        sets_.push_back(std::move(set));
        std::ranges::push_heap(sets_, is_worse);
    }
    Status solve(Set& set) {
        std::copy_n(scores_, node_.size(), node_.data());
        for (std::size_t t = 0; t < set.n_fixed; ++t)
            for (std::size_t k = 0; k < n_labels(t); ++k)
                if (static_cast<std::int32_t>(k) != set.best[t]) node_[begins_[t] + k] = -kInfinity;
        for (const std::int32_t label : set.excluded)
            node_[begins_[set.n_fixed] + static_cast<std::size_t>(label)] = -kInfinity;
        set.best.resize(n_nodes());
        const Block::Answer answer = best_(node_.data(), set.best.data());
        set.value = answer.value;
        return answer.status;
    }

    std::span<const std::size_t> begins_;
    const double* scores_;
    Best best_;
    std::vector<double> node_;
    std::vector<Set> sets_;
};

}  // namespace dualfield
