// Chains of few labels: four examples side by side, one in each lane of a vector.
//
// The passes of chain_passes.hpp put the labels of one example into vectors: with five labels a third of each is
// padding, and every sum over labels runs across a vector. Here a vector holds the same label of four examples. Nothing
// is padded, and every sum runs from vector to vector. The price is that rows are transposed on the way in and out, and
// that each table entry is loaded alone, so it pays for few labels only. Order 1, shared transitions; examples that end
// early are frozen by a mask.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "chain_passes.hpp"

namespace dualfield {
namespace {

// Rows a[l][0..4) to columns out[k] = {a[0][k], a[1][k], a[2][k], a[3][k]}; its own inverse.
DF_INLINE void transpose(const Vec (&a)[4], Vec (&out)[4]) {
    const Vec ab_even = __builtin_shufflevector(a[0], a[1], 0, 4, 2, 6),
              ab_odd = __builtin_shufflevector(a[0], a[1], 1, 5, 3, 7);
    const Vec cd_even = __builtin_shufflevector(a[2], a[3], 0, 4, 2, 6),
              cd_odd = __builtin_shufflevector(a[2], a[3], 1, 5, 3, 7);
    out[0] = __builtin_shufflevector(ab_even, cd_even, 0, 1, 4, 5);
    out[1] = __builtin_shufflevector(ab_odd, cd_odd, 0, 1, 4, 5);
    out[2] = __builtin_shufflevector(ab_even, cd_even, 2, 3, 6, 7);
    out[3] = __builtin_shufflevector(ab_odd, cd_odd, 2, 3, 6, 7);
}

// y[j] = combination over i < n of x[i] and table[i][j], J columns in registers.
template <class A, int J>
DF_INLINE void interleaved_tile(const double* x, std::size_t n, const double* table, std::size_t stride, double* y) {
    Vec acc[J];
    for (int j = 0; j < J; ++j) acc[j] = splat(A::kZero);
    for (std::size_t i = 0; i < n; ++i, x += kLanes, table += stride) {
        const Vec value = load(x);
        for (int j = 0; j < J; ++j) acc[j] = A::combine(acc[j], value, splat(table[j]));
    }
    for (int j = 0; j < J; ++j) store(y + kLanes * j, acc[j]);
}

template <class A>
DF_INLINE void interleaved_product(const double* x, std::size_t n, const double* table, std::size_t stride, double* y) {
    std::size_t column = 0;
    for (; column + 8 <= n; column += 8) interleaved_tile<A, 8>(x, n, table + column, stride, y + kLanes * column);
    y += kLanes * column;
    table += column;
    switch (n - column) {
        case 1:
            return interleaved_tile<A, 1>(x, n, table, stride, y);
        case 2:
            return interleaved_tile<A, 2>(x, n, table, stride, y);
        case 3:
            return interleaved_tile<A, 3>(x, n, table, stride, y);
        case 4:
            return interleaved_tile<A, 4>(x, n, table, stride, y);
        case 5:
            return interleaved_tile<A, 5>(x, n, table, stride, y);
        case 6:
            return interleaved_tile<A, 6>(x, n, table, stride, y);
        case 7:
            return interleaved_tile<A, 7>(x, n, table, stride, y);
        default:
            return;
    }
}

template <class A>
class Interleaved {
    static constexpr bool kScaled = A::kDomain == Domain::exponential;

  public:
    DF_INLINE Interleaved(const ChainContext& context, ChainWorkspace& workspace, std::span<ChainLane> lanes)
        : scores_(context.scores),
          table_(*context.shared),
          n_(context.topology.n_labels()),
          stride_(context.topology.width()),
          lanes_(lanes.data()) {
        longest_ = common_ = lanes[0].length;
        for (const ChainLane& lane : lanes) {
            longest_ = std::max(longest_, lane.length);
            common_ = std::min(common_, lane.length);
        }
        for (int l = 0; l < kInStep; ++l)
            node_[l] = scores_.node + static_cast<std::size_t>(scores_.offsets[lanes[l].example]) * n_;
        keep_ = lanes[0].nodes != nullptr || lanes[0].labels != nullptr;
        const std::size_t rows = keep_ ? longest_ : 2, row = kLanes * n_;
        alpha_ = workspace.rows.require((2 * rows + 2) * row);
        emission_ = alpha_ + rows * row;
        beta_ = emission_ + rows * row;
        // One vector of normalisers for each node, then one row of scores for each lane: zeros for lanes that have
        // ended.
        taken_ = workspace.taken.require(kLanes * longest_ + kLanes * n_);
        patched_ = taken_ + kLanes * longest_;
    }

    DF_INLINE void forward() {
        load_emission(0);
        for (std::size_t k = 0; k < n_; ++k) store(alpha(0) + kLanes * k, splat(A::kOne));
        absorb<false>(0, splat(0.0));
        for (std::size_t t = 1; t < common_; ++t) forward_step<false>(t);
        for (std::size_t t = common_; t < longest_; ++t) forward_step<true>(t);
        for (int l = 0; l < kInStep; ++l) {
            ChainLane& lane = lanes_[l];
            lane.bad_number = bad_[l] != 0 || table_.bad_number;
            if (kScaled) lane.out_of_range = far_[l] != 0 || table_.range > kRange;
            lane.log_partition = empty_[l] ? -kInfinity : products_.value(l);
        }
    }

    DF_INLINE void backward() {
        for (std::size_t k = 0; k < n_; ++k) store(beta(longest_ - 1) + kLanes * k, splat(A::kOne));
        report(longest_ - 1);
        for (std::size_t t = longest_ - 1; t >= 1; --t) {
            double* pulled = emission(t);
            const Vec taken = load(taken_ + kLanes * t);
            const Vec scale = kScaled ? select(less(splat(0.0), taken), splat(1.0) / taken, splat(0.0)) : splat(0.0);
            for (std::size_t k = 0; k < n_; ++k) {
                const Vec node = load(pulled + kLanes * k), after = load(beta(t) + kLanes * k);
                store(pulled + kLanes * k, kScaled ? node * after * scale : node + after);
            }
            interleaved_product<A>(pulled, n_, table_.backward.data(), stride_, beta(t - 1));
            if (!kScaled) shift(beta(t - 1));
            if (t >= common_) {
                const IntVec going = under_way(t);
                for (std::size_t k = 0; k < n_; ++k) {
                    double* at = beta(t - 1) + kLanes * k;
                    store(at, select(going, load(at), splat(A::kOne)));
                }
            }
            report(t - 1);
        }
    }

    // Clique marginals summed over the edges of each lane: alpha at one node times what was pulled back from the next
    // times the table entry between. What lies behind the end of a lane is left out by a factor of zero.
    DF_INLINE void sum_cliques() {
        for (std::size_t t = common_; t < longest_; ++t) {
            const IntVec going = under_way(t);
            for (std::size_t k = 0; k < n_; ++k) {
                double* at = emission(t) + kLanes * k;
                store(at, select(going, load(at), splat(0.0)));
            }
        }
        std::size_t i = 0;
        for (; i + 3 <= n_; i += 3) sum_rows<3>(i);
        for (; i < n_; ++i) sum_rows<1>(i);
    }

    // Best labellings from the maxima: the predecessor that attains each is looked up along the path.
    DF_INLINE void trace_back() {
        IntVec label = {};
        for (std::size_t t = longest_;; --t) {
            if (t < longest_) {
                Vec best = splat(-kInfinity);
                IntVec before = {};
                const double* entries[kInStep];
                for (int l = 0; l < kInStep; ++l)
                    entries[l] = table_.backward.data() + label[l] * static_cast<std::int64_t>(stride_);
                for (std::size_t i = 0; i < n_; ++i) {
                    const Vec entry = {entries[0][i], entries[1][i], entries[2][i], entries[3][i]};
                    choose(load(alpha(t - 1) + kLanes * i) + entry, static_cast<std::int64_t>(i), best, before);
                }
                label = before;
            }
            if (t >= common_) {
                Vec best = splat(-kInfinity);
                IntVec last = {};
                for (std::size_t i = 0; i < n_; ++i)
                    choose(load(alpha(t - 1) + kLanes * i), static_cast<std::int64_t>(i), best, last);
                for (int l = 0; l < kInStep; ++l)
                    if (lanes_[l].length == t) label[l] = last[l];
            }
            for (int l = 0; l < kInStep; ++l)
                if (t <= lanes_[l].length) lanes_[l].labels[t - 1] = static_cast<std::int32_t>(label[l]);
            if (t == 1) return;
        }
    }

  private:
    template <int I>
    DF_INLINE void sum_rows(std::size_t i) {
        std::size_t j = 0;
        for (; j + 4 <= n_; j += 4) sum_tile<I, 4>(i, j);
        for (; j < n_; ++j) sum_tile<I, 1>(i, j);
    }

    template <int I, int J>
    DF_INLINE void sum_tile(std::size_t i, std::size_t j) {
        Vec acc[I][J] = {};
        for (std::size_t t = 1; t < longest_; ++t) {
            const double *left = alpha(t - 1) + kLanes * i, *right = emission(t) + kLanes * j;
            Vec pulled[J];
            for (int c = 0; c < J; ++c) pulled[c] = load(right + kLanes * c);
            for (int r = 0; r < I; ++r) {
                const Vec before = load(left + kLanes * r);
                for (int c = 0; c < J; ++c) acc[r][c] += before * pulled[c];
            }
        }
        for (int r = 0; r < I; ++r) {
            for (int c = 0; c < J; ++c) {
                const std::size_t from = i + static_cast<std::size_t>(r), to = j + static_cast<std::size_t>(c);
                const Vec sum = acc[r][c] * splat(table_.forward.data()[from * stride_ + to]);
                for (int l = 0; l < kInStep; ++l) lanes_[l].clique_sums[from * n_ + to] = sum[l];
            }
        }
    }

    static DF_INLINE void choose(Vec value, std::int64_t index, Vec& best, IntVec& chosen) {
        chosen = select(less(best, value), IntVec{index, index, index, index}, chosen);
        best = larger(value, best);
    }
    DF_INLINE double* alpha(std::size_t t) const { return alpha_ + (keep_ ? t : t & 1) * kLanes * n_; }
    DF_INLINE double* emission(std::size_t t) const { return emission_ + (keep_ ? t : t & 1) * kLanes * n_; }
    DF_INLINE double* beta(std::size_t t) const { return beta_ + (t & 1) * kLanes * n_; }

    DF_INLINE IntVec under_way(std::size_t t) const {
        IntVec going;
        for (int l = 0; l < kInStep; ++l) going[l] = t < lanes_[l].length ? -1 : 0;
        return going;
    }

    // The scores of node t of a lane, [n_labels]: where they lie, or patched together; zeros after the end.
    DF_INLINE const double* source(int l, std::size_t t) const {
        const ChainLane& lane = lanes_[l];
        double* patched = patched_ + static_cast<std::size_t>(l) * n_;
        if (t >= lane.length) {
            std::fill_n(patched, n_, 0.0);
            return patched;
        }
        const double* node = node_[l] + t * n_;
        const double* cost = scores_.cost ? scores_.cost + (node - scores_.node) : nullptr;
        const double* start = t == 0 ? scores_.start : nullptr;
        const double* stop = t + 1 == lane.length ? scores_.stop : nullptr;
        if (!cost && !start && !stop) return node;
        for (std::size_t k = 0; k < n_; ++k)
            patched[k] = node[k] + (cost ? cost[k] : 0.0) + (start ? start[k] : 0.0) + (stop ? stop[k] : 0.0);
        return patched;
    }

    DF_INLINE void load_emission(std::size_t t) {
        const double* rows[kInStep];
        const bool inside = !scores_.cost && t > 0 && t + 1 < common_;
        for (int l = 0; l < kInStep; ++l) rows[l] = inside ? node_[l] + t * n_ : source(l, t);
        double* out = emission(t);
        const Vec factor = splat(scores_.inverse_temperature);
        Vec top = splat(-kInfinity);
        std::size_t k = 0;
        for (; k + kLanes <= n_; k += kLanes) {
            const Vec quad[4] = {load(rows[0] + k), load(rows[1] + k), load(rows[2] + k), load(rows[3] + k)};
            Vec columns[4];
            transpose(quad, columns);
            for (int c = 0; c < 4; ++c)
                take(columns[c] * factor, out + kLanes * (k + static_cast<std::size_t>(c)), top);
        }
        for (; k < n_; ++k) take(Vec{rows[0][k], rows[1][k], rows[2][k], rows[3][k]} * factor, out + kLanes * k, top);
        if constexpr (kScaled) {
            top = select(less(splat(-kInfinity), top), top, splat(0.0));
            for (k = 0; k < n_; ++k) {
                const Vec below = load(out + kLanes * k) - top;
                far_ |= less(below, splat(-kRange)) & less(splat(-kInfinity), below);
                store(out + kLanes * k, exponential(below));
            }
            double shift[kInStep];
            store(shift, top);
            products_.add<kInStep>(0, shift);
        }
    }
    DF_INLINE void take(Vec v, double* out, Vec& top) {
        bad_ |= ~less(v, splat(kInfinity));
        top = larger(v, top);
        store(out, v);
    }

    // The row takes in node t and is normalised; lanes that have ended keep the row that they had.
    template <bool Masked>
    DF_INLINE void absorb(std::size_t t, Vec added) {
        double* row = alpha(t);
        const double* node = emission(t);
        Vec norm = splat(A::kZero);
        for (std::size_t k = 0; k < n_; ++k) {
            const Vec v = kScaled ? load(row + kLanes * k) * load(node + kLanes * k)
                                  : load(row + kLanes * k) + load(node + kLanes * k);
            store(row + kLanes * k, v);
            norm = kScaled ? norm + v : larger(v, norm);
        }
        const Vec scale = select(less(splat(A::kZero), norm), kScaled ? splat(1.0) / norm : norm, splat(0.0));
        const IntVec going = Masked ? under_way(t) : IntVec{-1, -1, -1, -1};
        empty_ |= going & ~less(splat(A::kZero), norm);
        for (std::size_t k = 0; k < n_; ++k) {
            Vec v = load(row + kLanes * k);
            v = kScaled ? v * scale : v - scale;
            if (kScaled && !table_.complete) far_ |= going & less(v, splat(kSmallest)) & less(splat(0.0), v);
            if (Masked) v = select(going, v, load(alpha(t - 1) + kLanes * k));
            store(row + kLanes * k, v);
        }
        if (Masked) {
            norm = select(going, norm, splat(A::kOne));
            added = select(going, added, splat(0.0));
        }
        store(taken_ + kLanes * t, norm);
        double summand[kInStep];
        store(summand, kScaled ? added : added + norm);
        products_.add<kInStep>(0, summand);
        if (kScaled) products_.multiply<kInStep>(0, taken_ + kLanes * t);
    }

    template <bool Masked>
    DF_INLINE void forward_step(std::size_t t) {
        load_emission(t);
        interleaved_product<A>(alpha(t - 1), n_, table_.forward.data(), stride_, alpha(t));
        absorb<Masked>(t, splat(table_.shift));
    }

    DF_INLINE void shift(double* row) const {
        Vec top = splat(-kInfinity);
        for (std::size_t k = 0; k < n_; ++k) top = larger(load(row + kLanes * k), top);
        top = select(less(splat(-kInfinity), top), top, splat(0.0));
        for (std::size_t k = 0; k < n_; ++k) store(row + kLanes * k, load(row + kLanes * k) - top);
    }

    // The result at node t, transposed back into the rows of the four examples.
    DF_INLINE void report(std::size_t t) {
        const double* forward_row = alpha(t);
        double* row = beta(t + 1);  // free by now
        for (std::size_t k = 0; k < n_; ++k) {
            const Vec a = load(forward_row + kLanes * k), b = load(beta(t) + kLanes * k);
            store(row + kLanes * k, kScaled ? a * b : a + b);
        }
        if constexpr (!kScaled) {
            shift(row);
            const Vec best = {lanes_[0].log_partition, lanes_[1].log_partition, lanes_[2].log_partition,
                              lanes_[3].log_partition};
            for (std::size_t k = 0; k < n_; ++k) store(row + kLanes * k, load(row + kLanes * k) + best);
        }
        if (t >= common_) {
            for (int l = 0; l < kInStep; ++l)
                for (std::size_t k = 0; t < lanes_[l].length && k < n_; ++k)
                    lanes_[l].nodes[t * n_ + k] = row[kLanes * k + static_cast<std::size_t>(l)];
            return;
        }
        double* out[kInStep];
        for (int l = 0; l < kInStep; ++l) out[l] = lanes_[l].nodes + t * n_;
        std::size_t k = 0;
        for (; k + kLanes <= n_; k += kLanes) {
            const Vec columns[4] = {load(row + kLanes * k), load(row + kLanes * (k + 1)), load(row + kLanes * (k + 2)),
                                    load(row + kLanes * (k + 3))};
            Vec quad[4];
            transpose(columns, quad);
            for (int l = 0; l < kInStep; ++l) store(out[l] + k, quad[l]);
        }
        for (; k < n_; ++k)
            for (int l = 0; l < kInStep; ++l) out[l][k] = row[kLanes * k + static_cast<std::size_t>(l)];
    }

    const ChainScores& scores_;
    const TransitionTable& table_;
    const std::size_t n_, stride_;
    ChainLane* lanes_;
    std::size_t longest_, common_;
    bool keep_;
    const double* node_[kInStep];  // scores of the first node of each lane
    double *alpha_, *emission_, *beta_, *taken_, *patched_;
    LogProducts products_;
    IntVec bad_ = {}, far_ = {}, empty_ = {};
};

void interleaved_scaled(const ChainContext& context, ChainWorkspace& workspace, std::span<ChainLane> lanes) {
    Interleaved<ScaledSum> passes(context, workspace, lanes);
    passes.forward();
    if (lanes[0].nodes) passes.backward();
    if (lanes[0].clique_sums) passes.sum_cliques();
}

void interleaved_max(const ChainContext& context, ChainWorkspace& workspace, std::span<ChainLane> lanes) {
    Interleaved<MaxPlus> passes(context, workspace, lanes);
    passes.forward();
    if (lanes[0].nodes) passes.backward();
    if (lanes[0].labels) passes.trace_back();
}

}  // namespace
}  // namespace dualfield
