// The k best labellings of a tree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tree_pass.hpp"

namespace dualfield {

// The best labellings of what is below each node, by the label of the node.
class TreeStructure::Lists {
  public:
    Lists(Pass& pass, std::size_t length, std::size_t n_labels, std::size_t k)
        : pass_(pass), length_(length), n_(n_labels), k_(k), cells_(length * n_labels) {}

    // The k best of the example: labels [k][stride], scores [k].
    void solve(const double* node, double factor, std::int32_t* labels, std::size_t stride, double* scores) {
        for (std::size_t t = 0; t < length_; ++t)
            for (std::size_t a = 0; a < n_; ++a) cell(t, a).push_back({factor * node[t * n_ + a], {}});
        List all{{0.0, {}}};
        for (std::size_t place = length_; place-- > 0;) {
            const std::size_t t = pass_.node_at(place);
            const bool is_root = pass_.parent(t) < 0;
            const double* table = is_root ? nullptr : pass_.edge(t);
            for (std::size_t a = 0; a < (is_root ? 1 : n_); ++a) {
                const List below = message(t, is_root ? pass_.root() : table + a * n_);
                List& above = is_root ? all : cell(static_cast<std::size_t>(pass_.parent(t)), a);
                above = combined(above, below);
            }
        }
        for (std::size_t r = 0; r < k_; ++r) {
            const bool found = r < all.size() && all[r].score > -kInfinity;
            scores[r] = found ? all[r].score : -kInfinity;
            std::fill_n(labels + r * stride, length_, -1);
            if (found) trace(all[r], labels + r * stride);
        }
    }

  private:
    // A labelling of some subtrees: for each of them its root's label, and the rank in that label's list.
    struct Choice {
        std::uint32_t node, label, rank;
    };
    struct Entry {
        double score;
        std::vector<Choice> choices;
    };
    using List = std::vector<Entry>;  // best first, k at most

    List& cell(std::size_t t, std::size_t a) { return cells_[t * n_ + a]; }

    // The best ways to go on below an edge.
    List message(std::size_t t, const double* row) {
        List found;
        for (std::size_t k = 0; k < n_; ++k)
            for (std::size_t r = 0; r < cell(t, k).size(); ++r) {
                const double score = row[k] + cell(t, k)[r].score;
                if (score > -kInfinity)
                    found.push_back({score,
                                     {{static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(k),
                                       static_cast<std::uint32_t>(r)}}});
            }
        cut(found);
        return found;
    }
    List combined(const List& one, const List& two) const {
        List found;
        for (std::size_t i = 0; i < one.size(); ++i)
            // Of k best sums neither rank can be beyond: (i + 1) (j + 1) of them are at least as good.
            for (std::size_t j = 0; j < two.size() && (i + 1) * (j + 1) <= k_; ++j) {
                Entry entry{one[i].score + two[j].score, one[i].choices};
                entry.choices.insert(entry.choices.end(), two[j].choices.begin(), two[j].choices.end());
                found.push_back(std::move(entry));
            }
        cut(found);
        return found;
    }
    void cut(List& list) const {
        std::stable_sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) { return a.score > b.score; });
        if (list.size() > k_) list.resize(k_);
    }
    void trace(const Entry& entry, std::int32_t* labels) {
        std::vector<Choice> open = entry.choices;  // trees may be deep: no recursion
        while (!open.empty()) {
            const Choice choice = open.back();
            open.pop_back();
            labels[choice.node] = static_cast<std::int32_t>(choice.label);
            const auto& below = cell(choice.node, choice.label)[choice.rank].choices;
            open.insert(open.end(), below.begin(), below.end());
        }
    }

    Pass& pass_;
    std::size_t length_, n_, k_;
    std::vector<List> cells_;
};

}  // namespace dualfield
