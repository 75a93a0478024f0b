// The passes of junction.hpp: for one example, V = double, or for eight side by side, V = Twin.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "dualfield/structures/graphs/junction.hpp"
#include "factor_rows.hpp"
#include "lanes.hpp"

namespace dualfield {
namespace {

enum class Sums { products, logarithms, maxima };

constexpr double kSmallSum = 1e-250;   // something may have been lost in sums below it
constexpr double kNoUnderflow = -690;  // products of such a logarithm are not denormal

template <class V, Sums How>
class JunctionUp {
    using L = Lane<V>;
    static constexpr bool kProducts = How == Sums::products;
    static constexpr double kOne = kProducts ? 1.0 : 0.0;
    using Combine = std::conditional_t<kProducts, Times, Plus>;

  public:
    explicit JunctionUp(JunctionTask& task) : task_(task), plan_(*task.plan) {}

    void run() {
        read_factors();
        V lost = L::of(0.0);
        for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
            const EliminationStep& step = plan_.steps[s];
            low_ = L::of(0.0);
            fill(step);
            double* below = task_.messages + L::kCount * step.message;
            if constexpr (kProducts) lost = L::larger_of(lost, sum(step, below, s));
            if constexpr (How == Sums::logarithms) sum_in_logarithms(step, below);
            if constexpr (How == Sums::maxima) reduce_columns<Most>(step, below);
            if (!kProducts && step.parent < 0) total_ = total_ + L::at(below);
        }
        task_.is_normalised = How == Sums::logarithms;
        for (std::size_t l = 0; l < L::kCount; ++l) {
            double total = L::get(total_, l);
            if (kProducts) {
                const double log = std::log(L::get(mantissa_, l)) + L::get(exponent_, l) * 0.69314718055994530942;
                total = L::get(impossible_, l) != 0.0 ? -kInfinity : total + log / task_.inverse_temperature;
            }
            task_.total[l] = total;
            task_.is_lost[l] = L::get(lost, l) != 0.0;
            task_.bad_number[l] = L::get(strange_, l) != 0.0;
            task_.is_huge[l] = L::get(huge_, l) != 0.0;
        }
    }

  private:
    DF_INLINE V cell(std::size_t j) const { return L::at(own_ + L::kCount * j); }
    DF_INLINE void put(std::size_t j, V v) { L::put(own_ + L::kCount * j, v); }
    DF_INLINE double* numbers_of(std::size_t f) { return task_.exponentials + L::kCount * plan_.factor_begins[f]; }

    // All factors are read first: one long loop of exponentials is faster than many short ones.
    void read_factors() {
        const std::size_t n = plan_.factor_cells.size();
        for (std::size_t f = 0; f < n; ++f) {
            const FactorScores& scores = task_.factors[f];
            if (scores.ready) {
                strange_ = L::larger_of(strange_, L::of(scores.ready->bad_number ? 1.0 : 0.0));
                huge_ = L::larger_of(huge_, L::of(scores.ready->is_huge ? 1.0 : 0.0));
                if constexpr (kProducts) total_ = total_ + L::of(scores.ready->highest);
                continue;
            }
            const std::size_t cells = plan_.factor_cells[f];
            const FactorBounds<V> bounds = read_factor<V>(scores, cells, numbers_of(f));
            strange_ = L::larger_of(strange_, bounds.strange);
            huge_ = L::larger_of(huge_, bounds.huge());
            if constexpr (kProducts) {
                shift_factor<V>(bounds.highest, task_.inverse_temperature, cells, numbers_of(f));
                total_ = total_ + bounds.highest;
                L::put(task_.factor_lowest + L::kCount * f,
                       (bounds.lowest - bounds.highest) * L::of(task_.inverse_temperature));
            }
        }
        if constexpr (kProducts)
            for (std::size_t f = 0; f < n;) {
                std::size_t last = f;  // those that lie one behind the other
                while (last < n && !task_.factors[last].ready) ++last;
                if (last > f)
                    exponentiate(numbers_of(f), L::kCount * (plan_.factor_begins[last] - plan_.factor_begins[f]));
                f = last + 1;
            }
    }

    DF_INLINE void fill(const EliminationStep& step) {
        double *before = nullptr, *free = task_.scratch;
        for (std::size_t at = 0; at < step.levels.size(); ++at) {
            const EliminationStep::Level& level = step.levels[at];
            own_ = at + 1 == step.levels.size() ? task_.tables + L::kCount * step.table : free;
            bool is_filled = false;
            for (const EliminationStep::Input& input : level.inputs) {
                if (input.is_message) {
                    if constexpr (kProducts) low_ = low_ + L::at(task_.lowest + L::kCount * input.index);
                    const double* message = task_.messages + L::kCount * plan_.steps[input.index].message;
                    combine<false>(level, input.walk, before, is_filled, message);
                } else if (const SharedExponentials* ready = task_.factors[input.index].ready) {
                    if constexpr (kProducts) low_ = low_ + L::of(ready->lowest);
                    const double* shared = kProducts ? ready->values : task_.factors[input.index].shared[0];
                    combine<true>(level, input.walk, before, is_filled, shared);
                } else {
                    if constexpr (kProducts) low_ = low_ + L::at(task_.factor_lowest + L::kCount * input.index);
                    combine<false>(level, input.walk, before, is_filled, numbers_of(input.index));
                }
                is_filled = true;
            }
            if (!is_filled && before) repeat<V>(before, level.cells / level.repeats, level.repeats, own_);
            if (!is_filled && !before)
                for (std::size_t j = 0; j < level.cells; ++j) put(j, L::of(kOne));
            if (at == 0 && task_.known) keep_known(step);
            before = own_;
            free += L::kCount * level.cells;
        }
    }

    template <bool Shared>
    DF_INLINE void combine(const EliminationStep::Level& level, const Walk& walk, const double* before, bool is_filled,
                           const double* other) {
        if (!is_filled && !before) return overlay<V, Assign, Shared>(walk, own_, other);
        if (!is_filled && walk.run.size == level.repeats) return expand<V, Combine, Shared>(walk, before, other, own_);
        if (!is_filled) repeat<V>(before, level.cells / level.repeats, level.repeats, own_);
        overlay<V, Combine, Shared>(walk, own_, other);
    }

    // Labels of the step's node other than the known one are forbidden; on the first level, which has no other axis.
    DF_INLINE void keep_known(const EliminationStep& step) {
        const auto node = static_cast<std::size_t>(step.nodes[0]);
        for (std::size_t v = 0; v < step.n_labels; ++v) {
            double other[L::kCount];
            for (std::size_t l = 0; l < L::kCount; ++l) {
                const std::int32_t label = task_.known[l][node];
                other[l] = label >= 0 && static_cast<std::size_t>(label) != v ? 1.0 : 0.0;
            }
            put(v, L::where_less(L::of(0.0), L::at(other), L::of(kProducts ? 0.0 : -kInfinity), cell(v)));
        }
    }

    template <class Op>
    DF_INLINE void reduce_columns(const EliminationStep& step, double* below) const {
        const std::size_t size = step.n_below;
        if constexpr (L::kCount == 1) {
            for (std::size_t j = 0; j < size; ++j) below[j] = own_[j];
            for (std::size_t v = 1; v < step.n_labels; ++v) {
                const double* row = own_ + v * size;
                DF_INDEPENDENT
                for (std::size_t j = 0; j < size; ++j) below[j] = Op::of(below[j], row[j]);
            }
        } else {
            for (std::size_t j = 0; j < size; ++j) {
                V value = cell(j);
                for (std::size_t v = 1; v < step.n_labels; ++v) value = Op::of(value, cell(v * size + j));
                L::put(below + L::kCount * j, value);
            }
        }
    }

    // 1 where a sum is so small that something may have been lost in it. A sum is 0 for good where what is forbidden
    // makes it so, and no product can have become too small.
    DF_INLINE V sum(const EliminationStep& step, double* below, std::size_t s) {
        reduce_columns<Plus>(step, below);
        const std::size_t size = step.n_below;
        const V one = L::of(1.0), zero = L::of(0.0), none = L::of(kInfinity);
        V least = none, most = zero;
        for (std::size_t j = 0; j < size; ++j) {
            const V value = L::at(below + L::kCount * j);
            least = L::smaller_of(value, least);
            most = L::larger_of(value, most);
        }
        V least_positive = least;
        if (L::any_at_most(least, 0.0)) {
            least_positive = none;
            for (std::size_t j = 0; j < size; ++j) {
                const V value = L::at(below + L::kCount * j);
                least_positive = L::smaller_of(L::where_less(zero, value, value, none), least_positive);
            }
        }
        impossible_ = L::where_less(zero, most, impossible_, one);
        most = L::where_less(zero, most, most, one);
        const V inverse = one / most;
        for (std::size_t j = 0; j < size; ++j) {
            double* to = below + L::kCount * j;
            L::put(to, L::at(to) * inverse);
        }
        exponent_ = exponent_ + L::exponent(mantissa_ * most);
        mantissa_ = L::mantissa(mantissa_ * most);
        L::put(task_.scales + L::kCount * s, most);
        least_positive = L::smaller_of(least_positive * inverse, one);
        const V low = L::exponent(least_positive) * L::of(0.6931471805599453);
        L::put(task_.lowest + L::kCount * s, L::where_less(L::of(1e-300), least_positive, low, L::of(-1e4)));
        const V is_sure = L::where_less(L::of(kNoUnderflow), low_, one, zero);
        return L::where_less(L::of(kSmallSum), least, zero, one - is_sure);
    }

    DF_INLINE void sum_in_logarithms(const EliminationStep& step, double* below) {
        const std::size_t size = step.n_below;
        const V inverse = L::of(task_.inverse_temperature), none = L::of(-kInfinity);
        reduce_columns<Most>(step, below);
        for (std::size_t v = 0; v < step.n_labels; ++v)
            for (std::size_t j = 0; j < size; ++j) {
                const V top = L::at(below + L::kCount * j);
                put(v * size + j, (cell(v * size + j) - L::where_less(none, top, top, L::of(0.0))) * inverse);
            }
        exponentiate(own_, L::kCount * step.cells);
        for (std::size_t j = 0; j < size; ++j) {
            V total = L::of(0.0);
            for (std::size_t v = 0; v < step.n_labels; ++v) total = total + cell(v * size + j);
            const V share = L::where_less(L::of(0.0), total, L::of(1.0) / total, L::of(0.0));
            for (std::size_t v = 0; v < step.n_labels; ++v) put(v * size + j, cell(v * size + j) * share);
            for (std::size_t l = 0; l < L::kCount; ++l)
                below[L::kCount * j + l] += std::log(L::get(total, l)) / task_.inverse_temperature;
        }
    }

    JunctionTask& task_;
    const EliminationPlan& plan_;
    double* own_ = nullptr;
    V low_ = L::of(0.0);  // logarithm of the smallest product that is not forbidden, or less
    V total_ = L::of(0.0), mantissa_ = L::of(1.0), exponent_ = L::of(0.0);
    V strange_ = L::of(0.0), huge_ = L::of(0.0), impossible_ = L::of(0.0);  // 1 where so
};

// From the last level of a step to the first: use(input, level) is told of the level with the sums over later axes.
// That of the node alone is first_level then.
template <class V, class Op, class Use>
DF_INLINE void for_levels(JunctionTask& task, const EliminationStep& step, double start, Use use) {
    using L = Lane<V>;
    double *at = task.tables + L::kCount * step.table, *free = task.scratch;
    for (std::size_t l = step.levels.size(); l-- > 0;) {
        const EliminationStep::Level& level = step.levels[l];
        for (const EliminationStep::Input& input : level.inputs) use(input, at);
        if (l == 0) break;
        drop_axes<V, Op>(at, level.cells / level.repeats, level.repeats, start, free);
        at = free;
        free += L::kCount * step.levels[l - 1].cells;
    }
    task.first_level = at;
}

// After a pass of sums: tables become the probabilities of their cells. Where a step is done, the message of each of
// its children is what its table is multiplied with: the probability of the separator, divided by the sum.
template <class V>
void spread_down(JunctionTask& task) {
    using L = Lane<V>;
    const EliminationPlan& plan = *task.plan;
    double* x = task.scratch + L::kCount * plan.most_partial;
    double entropy = 0.0;
    const auto share = [&](std::size_t s, const double* above) DF_INLINE_LAMBDA {
        const EliminationStep& step = plan.steps[s];
        double* below = task.messages + L::kCount * step.message;
        if (task.is_normalised) {
            for (std::size_t j = 0; j < L::kCount * step.n_below; ++j) below[j] = above[j];
            return;
        }
        const V scale = L::at(task.scales + L::kCount * s);
        for (std::size_t j = 0; j < step.n_below; ++j, below += L::kCount, above += L::kCount) {
            const V sum = L::at(below) * scale;
            L::put(below, L::where_less(L::of(0.0), sum, L::at(above) / sum, L::of(0.0)));
        }
    };
    for (std::size_t s = plan.steps.size(); s-- > 0;) {
        const EliminationStep& step = plan.steps[s];
        const std::size_t size = step.n_below;
        if (step.parent < 0) {
            double whole[L::kCount];
            L::put(whole, L::of(1.0));
            share(s, whole);
        }
        double *own = task.tables + L::kCount * step.table, *ratio = task.messages + L::kCount * step.message;
        for (std::size_t v = 0; v < step.n_labels; ++v) {
            double* row = own + L::kCount * v * size;
            DF_INDEPENDENT
            for (std::size_t j = 0; j < size; ++j)
                L::put(row + L::kCount * j, L::at(row + L::kCount * j) * L::at(ratio + L::kCount * j));
        }
        for_levels<V, Plus>(task, step, 0.0, [&](const EliminationStep::Input& input, const double* level) {
            if (input.is_message) {
                gather<V, Plus>(input.walk, level, plan.steps[input.index].n_below, 0.0, x);
                share(input.index, x);
            } else if (task.factor_sums && is_wanted(task.factor_sums[input.index])) {
                const std::size_t cells = plan.factor_cells[input.index];
                const bool is_same =
                    input.walk.outer.empty() && input.walk.rows.size == 1 && input.walk.run.stride == 1;
                if (!is_same) gather<V, Plus>(input.walk, level, cells, 0.0, x);
                write_sums<V>(task.factor_sums[input.index], is_same ? level : x, cells);
            }
        });
        if (task.node_sums && is_wanted(task.node_sums[step.nodes[0]])) {
            V total = L::of(0.0);
            for (std::size_t v = 0; v < step.n_labels; ++v) total = total + L::at(task.first_level + L::kCount * v);
            for (std::size_t v = 0; v < step.n_labels; ++v)  // the total is 1 but for rounding
                L::put(x + L::kCount * v, L::at(task.first_level + L::kCount * v) / total);
            write_sums<V>(task.node_sums[step.nodes[0]], x, step.n_labels);
        }
        if (task.entropy) {  // of the node given its separator: that of both less that of the separator
            for (std::size_t j = 0; j < size; ++j) {
                double above = 0.0;
                for (std::size_t v = 0; v < step.n_labels; ++v) {
                    const double mass = own[v * size + j];
                    above += mass;
                    if (mass > 0.0) entropy -= mass * std::log(mass);
                }
                if (above > 0.0) entropy += above * std::log(above);
            }
        }
    }
    if (task.entropy) *task.entropy = entropy > 0.0 ? entropy : 0.0;
}

// After a pass of maxima, of one example: tables become the highest scores of labellings with their labels, what is
// inside plus the best outside. Those of nodes go to node_sums.
void best_down(JunctionTask& task) {
    const EliminationPlan& plan = *task.plan;
    double* x = task.scratch + plan.most_partial;
    // Where nothing inside fits, nothing fits at all.
    const auto add = [&](std::size_t s, const double* outside) {
        double* inside = task.messages + plan.steps[s].message;
        for (std::size_t j = 0; j < plan.steps[s].n_below; ++j)
            inside[j] = inside[j] > -kInfinity ? outside[j] - inside[j] : -kInfinity;
    };
    for (std::size_t s = plan.steps.size(); s-- > 0;) {
        const EliminationStep& step = plan.steps[s];
        const std::size_t size = step.n_below;
        if (step.parent < 0) add(s, task.total);
        const double* rest = task.messages + step.message;
        for (std::size_t v = 0; v < step.n_labels; ++v)
            for (std::size_t j = 0; j < size; ++j) task.tables[step.table + v * size + j] += rest[j];
        for_levels<double, Most>(task, step, -kInfinity, [&](const EliminationStep::Input& input, const double* level) {
            if (!input.is_message) return;
            gather<double, Most>(input.walk, level, plan.steps[input.index].n_below, -kInfinity, x);
            add(input.index, x);
        });
        double* here = task.node_sums[step.nodes[0]].own[0];
        for (std::size_t v = 0; v < step.n_labels; ++v) here[v] = task.first_level[v];
    }
}

template <Sums How>
void junction_up(JunctionTask& task) {
    if (task.n_lanes == 1)
        JunctionUp<double, How>(task).run();
    else
        JunctionUp<Twin, How>(task).run();
}

void junction_down(JunctionTask& task) {
    if (task.n_lanes == 1)
        spread_down<double>(task);
    else
        spread_down<Twin>(task);
}

}  // namespace
}  // namespace dualfield
