// One chain of order 1 with a transition table of its own: forward, backward and pair sums in one go.
//
// The passes of chain_passes.hpp serve every topology and walk several examples in step, which share a table. A solver
// that visits examples one by one has a table for each, and waits for every step of the recursion. Here a row of states
// is held in registers, sums run in two halves so that fewer steps wait for each other, and a row is scaled by the sum
// of the row before it, which is known by the time it is needed: no division stands in the way. With E the exponentials
// of node scores, M those of transitions, z_t the sum of row t:
//
//   a_0 = E_0,   a_t = (a_{t-1} M) E_t / z_{t-1},   b_{T-1} = 1 / z_{T-1},   b_{t-1} = M (E_t b_t) / z_{t-1},
//   marginals a_t b_t,   Z = product of all z_t.
#pragma once

#include <cmath>
#include <cstddef>

#include "chain_algebra.hpp"
#include "interleaved.hpp"
#include "rows.hpp"

namespace dualfield {
namespace {

// out[0..V) = sum over j < n of x[j] * table[j][0..V).
template <int V>
DF_INLINE void row_times_table(const double* x, std::size_t n, const double* table, Vec (&out)[V]) {
    constexpr std::size_t kWidth = kLanes * V;
    Vec even[V], odd[V];
    for (int v = 0; v < V; ++v) even[v] = odd[v] = splat(0.0);
    std::size_t j = 0;
    for (; j + 2 <= n; j += 2, table += 2 * kWidth) {
        const Vec first = splat(x[j]), second = splat(x[j + 1]);
        for (int v = 0; v < V; ++v) even[v] += first * load(table + kLanes * v);
        for (int v = 0; v < V; ++v) odd[v] += second * load(table + kWidth + kLanes * v);
    }
    if (j < n)
        for (int v = 0; v < V; ++v) even[v] += splat(x[j]) * load(table + kLanes * v);
    for (int v = 0; v < V; ++v) out[v] = even[v] + odd[v];
}

template <int V>
DF_INLINE double sum_of(const Vec (&row)[V]) {
    Vec total[1] = {row[0]};
    for (int v = 1; v < V; ++v) total[0] += row[v];
    double sum;
    reduce<Add, 1>(total, &sum);
    return sum;
}

// R rows of pair sums: a_{t-1}[i] times what was pulled back at t, over all t, times the table entry between.
template <int V, int R>
DF_INLINE void pair_rows(const double* alpha, const double* pulled, std::size_t length, std::size_t n, std::size_t i,
                         const double* table, double* sums) {
    constexpr std::size_t kWidth = kLanes * V;
    Vec acc[R][V];
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) acc[r][v] = splat(0.0);
    for (std::size_t t = 1; t < length; ++t) {
        const double *left = alpha + (t - 1) * kWidth + i, *right = pulled + t * kWidth;
        for (int r = 0; r < R; ++r) {
            const Vec before = splat(left[r]);
            for (int v = 0; v < V; ++v) acc[r][v] += before * load(right + kLanes * v);
        }
    }
    for (int r = 0; r < R; ++r) {
        const std::size_t at = i + static_cast<std::size_t>(r);
        for (int v = 0; v < V; ++v) acc[r][v] *= load(table + at * kWidth + kLanes * v);
        write_vectors<V>(sums + at * n, acc[r], n);
    }
}

template <int V>
class PlainBlock {
    static constexpr std::size_t kWidth = kLanes * V;

  public:
    DF_INLINE PlainBlock(BlockTask& task) : task_(task), n_(task.n_labels) {
        table_ = task.memory;
        transposed_ = table_ + kWidth * kWidth;
        alpha_ = transposed_ + kWidth * kWidth;
        emission_ = alpha_ + task.length * kWidth;
        inverse_ = emission_ + task.length * kWidth;
    }

    DF_CASE bool run() {
        if (!fill_tables() || !fill_emissions() || !forward()) return false;
        backward();
        std::size_t i = 0;
        constexpr int kRows = V <= 3 ? 4 : V <= 6 ? 2 : 1;
        for (; i + kRows <= n_; i += kRows)
            pair_rows<V, kRows>(alpha_, emission_, task_.length, n_, i, table_, task_.clique_sums);
        for (; i < n_; ++i) pair_rows<V, 1>(alpha_, emission_, task_.length, n_, i, table_, task_.clique_sums);
        return true;
    }

  private:
    static DF_INLINE void load_row(const double* source, std::size_t n, Vec (&row)[V]) {
        for (int v = 0; v < V; ++v) {
            const std::size_t at = kLanes * static_cast<std::size_t>(v);
            row[v] = at + kLanes <= n ? load(source + at) : load_first(source + at, n - at, -kInfinity);
        }
    }

    DF_INLINE bool fill_tables() {
        const NumberRange all = range(task_.cliques, n_ * n_, 1.0);
        if (all.bad_number || all.has_minus_infinity || all.highest - all.lowest > kRange) return false;
        shift_ = all.highest;
        for (std::size_t i = 0; i < n_; ++i) {
            Vec row[V];
            load_row(task_.cliques + i * n_, n_, row);
            for (int v = 0; v < V; ++v) store(table_ + i * kWidth + kLanes * v, exponential(row[v] - splat(shift_)));
        }
        for (std::size_t i = n_; i < kWidth; ++i)
            for (int v = 0; v < V; ++v) store(table_ + i * kWidth + kLanes * v, Vec{});
        for (std::size_t i = 0; i < kWidth; i += kLanes) {
            for (std::size_t k = 0; k < kWidth; k += kLanes) {
                Vec block[4], turned[4];
                for (std::size_t r = 0; r < 4; ++r) block[r] = load(table_ + (i + r) * kWidth + k);
                transpose(block, turned);
                for (std::size_t r = 0; r < 4; ++r) store(transposed_ + (k + r) * kWidth + i, turned[r]);
            }
        }
        return true;
    }

    DF_INLINE bool fill_emissions() {
        IntVec bad = {};
        for (std::size_t t = 0; t < task_.length; ++t) {
            Vec row[V];
            load_row(task_.node + t * n_, n_, row);
            Vec top[1] = {row[0]};
            for (int v = 1; v < V; ++v) top[0] = larger(row[v], top[0]);
            double highest;
            reduce<Larger, 1>(top, &highest);
            log_ += highest;
            for (int v = 0; v < V; ++v) {
                const Vec below = row[v] - splat(highest);
                // Also where a score is not a number; the padding is minus infinity and does not count.
                const IntVec good = at_most(splat(-kRange), below);
                bad |= ~good & ~padding(v);
                store(emission_ + t * kWidth + kLanes * v, exponential(below));
            }
        }
        return !any_set(bad);
    }
    DF_INLINE IntVec padding(int v) const {
        const double first = kLanes * v;
        return at_most(splat(static_cast<double>(n_)), Vec{first, first + 1.0, first + 2.0, first + 3.0});
    }

    DF_INLINE bool forward() {
        double product = 1.0;
        const auto take = [&](const Vec(&row)[V], std::size_t t) DF_INLINE_LAMBDA {
            const double sum = sum_of<V>(row);
            inverse_[t] = 1.0 / sum;
            product *= sum;
            if (!(product > 1e-200 && product < 1e200)) {
                log_ += std::log(product);
                product = 1.0;
            }
            return sum > 0.0;
        };
        Vec row[V];
        for (int v = 0; v < V; ++v) {
            row[v] = load(emission_ + kLanes * v);
            store(alpha_ + kLanes * v, row[v]);
        }
        bool good = take(row, 0);
        for (std::size_t t = 1; t < task_.length; ++t) {
            row_times_table<V>(alpha_ + (t - 1) * kWidth, n_, table_, row);
            const Vec scale = splat(inverse_[t - 1]);
            for (int v = 0; v < V; ++v) {
                row[v] *= load(emission_ + t * kWidth + kLanes * v) * scale;
                store(alpha_ + t * kWidth + kLanes * v, row[v]);
            }
            good &= take(row, t);
        }
        task_.log_partition =
            log_ + std::log(product) + shift_ * static_cast<double>(task_.length > 0 ? task_.length - 1 : 0);
        return good && task_.log_partition < kInfinity;
    }

    // Leaves what each node pulled back in place of its emissions.
    DF_INLINE void backward() {
        const std::size_t last = task_.length - 1;
        Vec beta[V];
        for (int v = 0; v < V; ++v) beta[v] = splat(inverse_[last]);
        for (std::size_t t = last;; --t) {
            Vec out[V];
            for (int v = 0; v < V; ++v) out[v] = load(alpha_ + t * kWidth + kLanes * v) * beta[v];
            write_vectors<V>(task_.node_marginals + t * n_, out, n_);
            if (t == 0) return;
            double* pulled = emission_ + t * kWidth;
            const Vec scale = splat(inverse_[t - 1]);
            for (int v = 0; v < V; ++v) store(pulled + kLanes * v, load(pulled + kLanes * v) * beta[v] * scale);
            row_times_table<V>(pulled, n_, transposed_, beta);
        }
    }

    BlockTask& task_;
    const std::size_t n_;
    double *table_, *transposed_, *alpha_, *emission_, *inverse_;
    double shift_ = 0.0, log_ = 0.0;
};

bool plain_block(BlockTask& task) {
    switch ((task.n_labels + kLanes - 1) / kLanes) {
        case 1:
            return PlainBlock<1>(task).run();
        case 2:
            return PlainBlock<2>(task).run();
        case 3:
            return PlainBlock<3>(task).run();
        case 4:
            return PlainBlock<4>(task).run();
        case 5:
            return PlainBlock<5>(task).run();
        case 6:
            return PlainBlock<6>(task).run();
        case 7:
            return PlainBlock<7>(task).run();
        case 8:
            return PlainBlock<8>(task).run();
        default:
            return false;
    }
}

}  // namespace
}  // namespace dualfield
