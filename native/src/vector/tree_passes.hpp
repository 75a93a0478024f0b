// The passes of tree_task.hpp, for one example or eight side by side.
#pragma once

#include <cstddef>

#include "dualfield/structures/graphs/tree_task.hpp"
#include "junction_passes.hpp"

namespace dualfield {
namespace {

// y[j] = sum_i x[i] table[i][j], n each way.
template <class V>
DF_INLINE void table_product(const double* x, const double* table, std::size_t n, double* y) {
    using L = Lane<V>;
    if constexpr (L::kCount == 1) {
        for (std::size_t j = 0; j < n; ++j) y[j] = 0.0;
        for (std::size_t i = 0; i < n; ++i, table += n) {
            DF_INDEPENDENT
            for (std::size_t j = 0; j < n; ++j) y[j] = y[j] + x[i] * table[j];
        }
    } else {
        const auto tile = [&]<int J>(std::size_t j) DF_INLINE_LAMBDA {
            V sum[J];
            for (int k = 0; k < J; ++k) sum[k] = L::of(0.0);
            for (std::size_t i = 0; i < n; ++i) {
                const V v = L::at(x + L::kCount * i);
                for (int k = 0; k < J; ++k) sum[k] = sum[k] + v * L::of(table[i * n + j + static_cast<std::size_t>(k)]);
            }
            for (int k = 0; k < J; ++k) L::put(y + L::kCount * (j + static_cast<std::size_t>(k)), sum[k]);
        };
        std::size_t j = 0;
        for (; j + 4 <= n; j += 4) tile.template operator()<4>(j);
        if (n - j == 3) tile.template operator()<3>(j);
        if (n - j == 2) tile.template operator()<2>(j);
        if (n - j == 1) tile.template operator()<1>(j);
    }
}

template <class V>
class TreePass {
    using L = Lane<V>;

  public:
    explicit TreePass(TreeTask& task) : task_(task), n_(task.n_labels) {}

    void run() {
        up();
        for (std::size_t l = 0; l < L::kCount; ++l) {
            const double log = std::log(L::get(mantissa_, l)) + L::get(exponent_, l) * 0.69314718055994530942;
            task_.total[l] = L::get(total_, l) + log / task_.inverse_temperature;
            task_.bad_number[l] = L::get(strange_, l) != 0.0;
            task_.is_lost[l] = L::get(lost_, l) != 0.0;
        }
        bool is_wanted = false;
        for (std::size_t l = 0; l < L::kCount; ++l) is_wanted |= task_.node_sums[l] && !task_.is_lost[l];
        if (!is_wanted) return;
        for (std::size_t l = 0; l < L::kCount; ++l)
            if (task_.is_lost[l] || task_.bad_number[l])
                task_.node_sums[l] = task_.pair_sums[l] = task_.root_sums[l] = nullptr;
        down();
        if (task_.pair_sums[0] || has_pairs())
            for (std::size_t type = 0; type < task_.n_types; ++type) sum_pairs(type);
    }

  private:
    double* row(double* of, std::size_t t) const { return of + L::kCount * n_ * t; }
    std::size_t type_of(std::size_t t) const { return task_.types ? static_cast<std::size_t>(task_.types[t]) : 0; }
    bool has_pairs() const {
        bool any = false;
        for (std::size_t l = 0; l < L::kCount; ++l) any |= task_.pair_sums[l] != nullptr;
        return any;
    }

    // Divided by the largest, which is returned, and whose logarithm goes to the total.
    DF_INLINE V scale(double* x) {
        V most = L::at(x);
        for (std::size_t k = 1; k < n_; ++k) most = L::larger_of(L::at(x + L::kCount * k), most);
        divide(x, most);
        return most;
    }
    DF_INLINE void divide(double* x, V by) {
        lose_below(by);
        by = L::where_less(L::of(kSmallSum), by, by, L::of(1.0));
        const V inverse = L::of(1.0) / by;
        for (std::size_t k = 0; k < n_; ++k) L::put(x + L::kCount * k, L::at(x + L::kCount * k) * inverse);
        exponent_ = exponent_ + L::exponent(mantissa_ * by);
        mantissa_ = L::mantissa(mantissa_ * by);
    }
    // Products below the smallest number are 0: something may have been lost in a sum of them that is not far above it.
    DF_INLINE void lose_below(V sum) { lost_ = L::where_less(L::of(kSmallSum), sum, lost_, L::of(1.0)); }

    void up() {
        FactorScores scores;
        for (std::size_t t = 0; t < task_.length; ++t) {
            for (std::size_t l = 0; l < L::kCount; ++l) scores.own[l] = task_.nodes[l] + t * n_;
            const FactorBounds<V> bounds = read_factor<V>(scores, n_, row(task_.b, t));
            shift_factor<V>(bounds.highest, task_.inverse_temperature, n_, row(task_.b, t));
            strange_ = L::larger_of(strange_, bounds.strange);
            total_ = total_ + bounds.highest;
        }
        exponentiate(task_.b, L::kCount * n_ * task_.length);
        for (std::size_t place = task_.length; place-- > 0;) {
            const auto t = static_cast<std::size_t>(task_.order[place]);
            double* b = row(task_.b, t);
            if (task_.parents[t] < 0) {
                V sum = L::of(0.0);
                const V most = scale(b);
                for (std::size_t k = 0; k < n_; ++k) {
                    const V v = L::at(b + L::kCount * k) * L::of(task_.roots->values[k]);
                    L::put(b + L::kCount * k, v);
                    sum = sum + v;
                }
                total_ = total_ + L::of(task_.roots->highest);
                lose_below(sum * most);
                divide(b, sum);
                continue;
            }
            const V most = scale(b);
            double *message = row(task_.r, t), *above = row(task_.b, static_cast<std::size_t>(task_.parents[t]));
            table_product<V>(b, task_.transposed + type_of(t) * n_ * n_, n_, message);
            V least = L::at(message);
            for (std::size_t a = 1; a < n_; ++a) least = L::smaller_of(L::at(message + L::kCount * a), least);
            lose_below(least * most);
            scale(message);
            total_ = total_ + L::of(task_.shifts[type_of(t)]);
            for (std::size_t a = 0; a < n_; ++a)
                L::put(above + L::kCount * a, L::at(above + L::kCount * a) * L::at(message + L::kCount * a));
        }
    }

    void down() {
        for (std::size_t place = 0; place < task_.length; ++place) {
            const auto t = static_cast<std::size_t>(task_.order[place]);
            double *belief = row(task_.belief, t), *r = row(task_.r, t);
            const double* b = row(task_.b, t);
            FactorSums sums;
            for (std::size_t l = 0; l < L::kCount; ++l)
                sums.own[l] = task_.node_sums[l] ? task_.node_sums[l] + t * n_ : nullptr;
            if (task_.parents[t] < 0) {
                for (std::size_t k = 0; k < L::kCount * n_; ++k) belief[k] = b[k];
                for (std::size_t l = 0; l < L::kCount; ++l) sums.shared[l] = task_.root_sums[l];
                write_sums<V>(sums, belief, n_);
                continue;
            }
            const double* above = row(task_.belief, static_cast<std::size_t>(task_.parents[t]));
            for (std::size_t a = 0; a < n_; ++a)
                L::put(r + L::kCount * a, L::at(above + L::kCount * a) / L::at(r + L::kCount * a));
            table_product<V>(r, task_.tables + type_of(t) * n_ * n_, n_, belief);
            V sum = L::of(0.0);
            for (std::size_t k = 0; k < n_; ++k) {
                const V v = L::at(belief + L::kCount * k) * L::at(b + L::kCount * k);
                L::put(belief + L::kCount * k, v);
                sum = sum + v;
            }
            const V inverse = L::of(1.0) / sum;  // the message was scaled
            for (std::size_t k = 0; k < n_; ++k) {
                L::put(belief + L::kCount * k, L::at(belief + L::kCount * k) * inverse);
                L::put(r + L::kCount * k, L::at(r + L::kCount * k) * inverse);
            }
            write_sums<V>(sums, belief, n_);
        }
    }

    DF_INLINE bool is_of(std::size_t t, std::size_t type) const {
        return task_.parents[t] >= 0 && (task_.n_types == 1 || type_of(t) == type);
    }

    // Two rows by two columns at a time stay in registers while all edges go by.
    template <std::size_t I, std::size_t J>
    DF_INLINE void pair_tile(std::size_t type, std::size_t i, std::size_t j, double* out) const {
        V sum[I][J];
        for (std::size_t a = 0; a < I; ++a)
            for (std::size_t k = 0; k < J; ++k) sum[a][k] = L::of(0.0);
        for (std::size_t t = 0; t < task_.length; ++t) {
            if (!is_of(t, type)) continue;
            const double *r = row(task_.r, t) + L::kCount * i, *b = row(task_.b, t) + L::kCount * j;
            for (std::size_t a = 0; a < I; ++a)
                for (std::size_t k = 0; k < J; ++k)
                    sum[a][k] = sum[a][k] + L::at(r + L::kCount * a) * L::at(b + L::kCount * k);
        }
        for (std::size_t a = 0; a < I; ++a)
            for (std::size_t k = 0; k < J; ++k) L::put(out + L::kCount * ((i + a) * n_ + j + k), sum[a][k]);
    }

    void sum_pairs(std::size_t type) const {
        double* pairs = task_.scratch;
        if constexpr (L::kCount == 1) {
            for (std::size_t j = 0; j < n_ * n_; ++j) pairs[j] = 0.0;
            for (std::size_t t = 0; t < task_.length; ++t) {
                if (!is_of(t, type)) continue;
                const double *r = row(task_.r, t), *b = row(task_.b, t);
                for (std::size_t a = 0; a < n_; ++a) {
                    double* to = pairs + a * n_;
                    DF_INDEPENDENT
                    for (std::size_t k = 0; k < n_; ++k) to[k] = to[k] + r[a] * b[k];
                }
            }
        } else {
            const std::size_t even = n_ / 2 * 2;
            for (std::size_t i = 0; i < even; i += 2) {
                for (std::size_t j = 0; j < even; j += 2) pair_tile<2, 2>(type, i, j, pairs);
                if (even < n_) pair_tile<2, 1>(type, i, even, pairs);
            }
            if (even < n_) {
                for (std::size_t j = 0; j < even; j += 2) pair_tile<1, 2>(type, even, j, pairs);
                pair_tile<1, 1>(type, even, even, pairs);
            }
        }
        const double* table = task_.tables + type * n_ * n_;
        for (std::size_t j = 0; j < n_ * n_; ++j)
            L::put(pairs + L::kCount * j, L::at(pairs + L::kCount * j) * L::of(table[j]));
        FactorSums sums;
        for (std::size_t l = 0; l < L::kCount; ++l)
            sums.own[l] = task_.pair_sums[l] ? task_.pair_sums[l] + type * n_ * n_ : nullptr;
        write_sums<V>(sums, pairs, n_ * n_);
    }

    TreeTask& task_;
    std::size_t n_;
    V total_ = L::of(0.0), mantissa_ = L::of(1.0), exponent_ = L::of(0.0);
    V strange_ = L::of(0.0), lost_ = L::of(0.0);
};

void tree_sums(TreeTask& task) {
    if (task.n_lanes == 1)
        TreePass<double>(task).run();
    else
        TreePass<Twin>(task).run();
}

}  // namespace
}  // namespace dualfield
