// The passes of junction.hpp over one example, or several of the same shape, in memory that is reused.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/parallel.hpp"
#include "dualfield/core/random.hpp"
#include "dualfield/structures/graphs/junction.hpp"
#include "dualfield/structures/structure.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

class JunctionPass {
  public:
    // Beyond this many numbers for each the memory of examples side by side does not stay in caches.
    static constexpr std::size_t kMostCellsOfLanes = std::size_t{1} << 14;
    static bool has_lanes(const EliminationPlan& plan) { return plan.cells <= kMostCellsOfLanes; }

    // Some examples of a shape, at most kSideBySide; scores are then set in factors(), all of them.
    void begin(const EliminationPlan& plan, std::size_t n_examples, double inverse_temperature) {
        n_examples_ = n_examples;
        task_ = {};
        task_.plan = &plan;
        task_.n_lanes = n_examples == 1 ? 1 : kSideBySide;
        task_.inverse_temperature = inverse_temperature;
        task_.tables = tables_.require(task_.n_lanes * std::max<std::size_t>(plan.cells, 1));
        task_.messages = messages_.require(task_.n_lanes * std::max<std::size_t>(plan.messages, 1));
        const std::size_t n_steps = task_.n_lanes * plan.steps.size();
        task_.scales = steps_.require(2 * n_steps + task_.n_lanes * (plan.factor_cells.size() + 1));
        task_.lowest = task_.scales + n_steps;
        task_.factor_lowest = task_.lowest + n_steps;
        task_.exponentials = exponentials_.require(task_.n_lanes * JunctionTask::exponentials_size(plan));
        task_.scratch = scratch_.require(task_.n_lanes * JunctionTask::scratch_size(plan));
        factors_.assign(plan.factor_cells.size(), {});
        task_.factors = factors_.data();
    }
    std::size_t n_examples() const { return n_examples_; }
    // Lanes beyond the examples compute what the first one does: set(lane, example) for all lanes.
    template <class Set>
    void for_lanes(Set set) const {
        for (std::size_t l = 0; l < task_.n_lanes; ++l) set(l, l < n_examples_ ? l : 0);
    }
    FactorScores& factor(std::size_t f) { return factors_[f]; }
    // Labels that are known, of each example [n_nodes]; null: none.
    void know(const std::int32_t* labels, std::size_t stride) {
        if (!labels) return;
        for_lanes([&](std::size_t lane, std::size_t example) { known_[lane] = labels + example * stride; });
        task_.known = known_.data();
    }

    void up_max() { routines().junction_maxima(task_); }
    // Calls body() for the examples that have an answer by products, then for those that need logarithms: use() says
    // which of them are meant.
    template <class Body>
    void up_sum(Body body) {
        routines().junction_products(task_);
        std::array<bool, kSideBySide> lost{};
        bool any_lost = false, all_lost = true;
        for (std::size_t i = 0; i < n_examples_; ++i) {
            lost[i] = task_.is_lost[i] && !task_.bad_number[i];
            any_lost |= lost[i];
            all_lost &= lost[i];
            is_meant_[i] = !lost[i];
        }
        if (!all_lost) body();
        if (!any_lost) return;
        routines().junction_logarithms(task_);
        is_meant_ = lost;
        body();
    }
    bool is_meant(std::size_t example) const { return is_meant_[example]; }

    // Scores, not divided by the temperature.
    double total(std::size_t example) const { return task_.total[example]; }
    bool is_huge(std::size_t example) const { return task_.is_huge[example]; }
    Status status(std::size_t example) const {
        const double total = task_.inverse_temperature * task_.total[example];
        if (task_.bad_number[example] || !(total < kInfinity)) return Status::bad_number;
        return total > -kInfinity ? Status::ok : Status::impossible;
    }

    // After up_sum: the probabilities of factors and nodes, [n_factors] and [n_nodes]; either may be null. Tables are
    // overwritten.
    void down(FactorSums* factor_sums, FactorSums* node_sums, double* entropy = nullptr) {
        task_.factor_sums = factor_sums;
        task_.node_sums = node_sums;
        task_.entropy = entropy;
        routines().junction_down(task_);
    }
    // After up_max of one example: for each label of each node the highest score of a labelling that has it.
    void best_down(FactorSums* node_sums) {
        task_.node_sums = node_sums;
        routines().junction_best_down(task_);
    }

    // After up_max: the best labels, from the last step to the first; among equals the lowest.
    void decode(std::size_t example, std::int32_t* labels) const {
        walk_back(example, labels, [](const double* column, std::size_t n, std::size_t stride) {
            std::size_t best = 0;
            for (std::size_t v = 1; v < n; ++v)
                if (column[v * stride] > column[best * stride]) best = v;
            return best;
        });
    }
    // After up_sum: labels drawn from p(y).
    void draw(std::size_t example, RandomStream& random, std::int32_t* labels) {
        walk_back(example, labels, [&](const double* column, std::size_t n, std::size_t stride) {
            shares_.resize(n);
            for (std::size_t v = 0; v < n; ++v) shares_[v] = column[v * stride];
            return draw_index({shares_.data(), n}, random.uniform());
        });
    }

  private:
    // choose(column, n, stride) of the labels of a step's node, given those of its separator.
    template <class Choose>
    void walk_back(std::size_t example, std::int32_t* labels, Choose choose) const {
        const std::vector<EliminationStep>& steps = task_.plan->steps;
        for (std::size_t s = steps.size(); s-- > 0;) {
            std::size_t place = steps[s].table;
            for (std::size_t j = 0; j < steps[s].strides.size(); ++j)
                place += static_cast<std::size_t>(labels[steps[s].nodes[j + 1]]) * steps[s].strides[j];
            labels[steps[s].nodes[0]] = static_cast<std::int32_t>(choose(
                task_.tables + place * task_.n_lanes + example, steps[s].n_labels, steps[s].n_below * task_.n_lanes));
        }
    }

    JunctionTask task_;
    std::size_t n_examples_ = 0;
    std::vector<FactorScores> factors_;
    std::array<const std::int32_t*, kSideBySide> known_{};
    std::array<bool, kSideBySide> is_meant_{};
    std::vector<double> shares_;
    Buffer tables_, messages_, steps_, exponentials_, scratch_;
};

// Factors that all examples share, exponentiated once.
class SharedFactors {
  public:
    SharedFactors(std::size_t n_factors, std::size_t n_cells) : ready_(n_factors) { memory_.require(n_cells); }
    void add(std::size_t f, const double* scores, std::size_t cells, double inverse_temperature) {
        routines().share_exponentials(scores, cells, inverse_temperature, memory_.data() + used_, ready_[f]);
        used_ += cells;
    }
    void clear() { used_ = 0; }
    const SharedExponentials* operator[](std::size_t f) const { return &ready_[f]; }

  private:
    std::vector<SharedExponentials> ready_;
    Buffer memory_;
    std::size_t used_ = 0;
};

}  // namespace dualfield
