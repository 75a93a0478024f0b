// Log-partitions and marginals of trees by scaled sums (tree_task.hpp), in memory that is reused.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/structures/graphs/tree.hpp"
#include "dualfield/structures/graphs/tree_task.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

class TreeStructure::Sums {
  public:
    explicit Sums(const TreeStructure& tree) : tree_(tree), n_(tree.n_labels_) {}

    // Whether sums can be taken so: edges have only what their type scores.
    static bool suits(const TreeStructure& tree, const ScoreView& view) {
        return !tree.options_.with_edges || !view.own[1];
    }
    // Reads shared scores anew the next time.
    void forget() { factor_ = 0.0; }

    // Some examples of one shape that follow each other, of a view whose first example is `from`. where(i) says where
    // the marginals of one go, null where they are not wanted; what was lost has no answer.
    struct Place {
        double *nodes = nullptr, *shared = nullptr;
    };
    template <class Where>
    const TreeTask& solve(std::size_t first, std::size_t n_examples, std::size_t from, const ScoreView& view,
                          Where where) {
        if (view.shared != shared_ || view.inverse_temperature != factor_) read_shared(view);
        task_ = {};
        const std::size_t lanes = task_.n_lanes = n_examples == 1 ? 1 : kSideBySide, length = tree_.length(first);
        const std::size_t size = lanes * std::max<std::size_t>(length * n_, 1),
                          n_pairs = tree_.options_.n_types * n_ * n_;
        task_.length = length;
        task_.n_labels = n_;
        task_.n_types = tree_.options_.n_types;
        task_.order = tree_.order_.data() + tree_.first(first);
        task_.parents = tree_.parents_ + tree_.first(first);
        task_.types = tree_.options_.types ? tree_.options_.types + tree_.first(first) : nullptr;
        task_.inverse_temperature = factor_;
        task_.tables = tables_.data();
        task_.transposed = transposed_.data();
        task_.shifts = shifts_.data();
        task_.roots = &roots_;
        task_.b = memory_.require(3 * size);
        task_.r = task_.b + size;
        task_.belief = task_.r + size;
        task_.scratch = scratch_.require(lanes * TreeTask::scratch_size(n_));
        for (std::size_t l = 0; l < lanes; ++l) {
            const std::size_t i = l < n_examples ? l : 0;
            task_.nodes[l] = view.own[0] + (tree_.first(first + i) - tree_.first(from)) * n_;
            if (l >= n_examples) continue;
            const Place to = where(i);
            task_.node_sums[l] = to.nodes;
            task_.pair_sums[l] = to.shared;
            if (to.shared && tree_.options_.with_roots) {
                task_.root_sums[l] = to.shared + n_pairs;
                std::fill_n(to.shared + n_pairs, n_, 0.0);
            }
        }
        routines().tree_sums(task_);
        for (std::size_t l = 0; l < lanes; ++l) task_.bad_number[l] |= is_bad_;
        return task_;
    }

  private:
    void read_shared(const ScoreView& view) {
        shared_ = view.shared;
        factor_ = view.inverse_temperature;
        const Options& options = tree_.options_;
        const std::size_t size = n_ * n_, n_pairs = options.n_types * size;
        scores_.resize(std::max(n_pairs, n_));
        tables_.resize(n_pairs);
        transposed_.resize(n_pairs);
        shifts_.resize(options.n_types);
        is_bad_ = false;
        const auto read = [&](const double* scores, const double* limits, std::size_t n) {
            for (std::size_t j = 0; j < n; ++j) scores_[j] = (scores ? scores[j] : 0.0) + (limits ? limits[j] : 0.0);
        };
        read(shared_, options.limits, n_pairs);
        for (std::size_t type = 0; type < options.n_types; ++type) {
            SharedExponentials found;
            double* table = tables_.data() + type * size;
            routines().share_exponentials(scores_.data() + type * size, size, factor_, table, found);
            shifts_[type] = found.highest;
            is_bad_ |= found.bad_number;
            for (std::size_t a = 0; a < n_; ++a)
                for (std::size_t k = 0; k < n_; ++k) transposed_[type * size + k * n_ + a] = table[a * n_ + k];
        }
        read(options.with_roots && shared_ ? shared_ + n_pairs : nullptr, options.root_limits, n_);
        root_values_.resize(n_);
        routines().share_exponentials(scores_.data(), n_, factor_, root_values_.data(), roots_);
        is_bad_ |= roots_.bad_number;
    }

    const TreeStructure& tree_;
    std::size_t n_;
    const double* shared_ = nullptr;
    double factor_ = 0.0;
    bool is_bad_ = false;
    std::vector<double> scores_, tables_, transposed_, shifts_, root_values_;
    SharedExponentials roots_;
    Buffer memory_, scratch_;
    TreeTask task_;
};

}  // namespace dualfield
