// What "add" and "multiply" mean in the dynamic programme of a chain: one programme, three algebras.
//
//   ScaledSum   sums of products of exponentials, each row scaled to sum 1: fast, for scores of moderate range
//   LogSum      logarithms of sums of exponentials, each row shifted to maximum 0: for any scores
//   MaxPlus     maxima of sums, each row shifted to maximum 0: the limit of temperature 0
//
// Each offers, for L rows at a time: prepare (scores of a node to factors), product (a row times a block of the
// transition table), absorb (take in the scores of a node and normalise the row), pull_back and settle (the same on the
// way back), and report (what is known of a state once both passes have met).
#pragma once

#include <cmath>
#include <cstddef>

#include "dualfield/structures/chains/chain_scores.hpp"
#include "rows.hpp"

namespace dualfield {
namespace {

// Ranges within which no entry that matters can underflow in ScaledSum. One step multiplies an entry by at least
// exp(-2 * kRange) > 1e-174; entries of a normalised row are at least kSmallest, or zero because nothing leads there.
// Where every state reaches every other in one step the second condition follows from the first.
constexpr double kRange = 200.0;
constexpr double kSmallest = 1e-120;

// y[l][0..4W) = combination over i < n of x[l][i] and block[i][0..4W), for L rows at once with all sums in registers.
template <class Algebra, int L, int W>
DF_INLINE void product_tile(const double* const* x, std::size_t n, const double* block, std::size_t stride,
                            double* const* y, std::size_t column) {
    Vec acc[L][W];
    for (int l = 0; l < L; ++l)
        for (int w = 0; w < W; ++w) acc[l][w] = splat(Algebra::kZero);
    block += column;
    for (std::size_t i = 0; i < n; ++i, block += stride) {
        Vec entry[W];
        for (int w = 0; w < W; ++w) entry[w] = load(block + kLanes * w);
        for (int l = 0; l < L; ++l) {
            const Vec value = splat(x[l][i]);
            for (int w = 0; w < W; ++w) acc[l][w] = Algebra::combine(acc[l][w], value, entry[w]);
        }
    }
    for (int l = 0; l < L; ++l)
        for (int w = 0; w < W; ++w) store(y[l] + column + kLanes * w, acc[l][w]);
}

// Tiles of about equal width, at most 12 accumulators: sixteen registers hold them, the table entries and the factor.
template <class Algebra, int L>
DF_CASE void product_rows(const double* const* x, std::size_t n, const double* block, std::size_t width,
                          double* const* y) {
    constexpr std::size_t kMost = L == 1 ? 8 : 3;
    const std::size_t vectors = width / kLanes;
    const std::size_t tiles = (vectors + kMost - 1) / kMost;
    for (std::size_t tile = 0, done = 0; tile < tiles; ++tile) {
        const std::size_t take = (vectors - done + (tiles - tile) - 1) / (tiles - tile);
        const std::size_t column = done * kLanes;
        switch (take) {
            case 1:
                product_tile<Algebra, L, 1>(x, n, block, width, y, column);
                break;
            case 2:
                product_tile<Algebra, L, 2>(x, n, block, width, y, column);
                break;
            case 3:
                product_tile<Algebra, L, 3>(x, n, block, width, y, column);
                break;
            default:
                if constexpr (L == 1) {
                    switch (take) {
                        case 4:
                            product_tile<Algebra, 1, 4>(x, n, block, width, y, column);
                            break;
                        case 5:
                            product_tile<Algebra, 1, 5>(x, n, block, width, y, column);
                            break;
                        case 6:
                            product_tile<Algebra, 1, 6>(x, n, block, width, y, column);
                            break;
                        case 7:
                            product_tile<Algebra, 1, 7>(x, n, block, width, y, column);
                            break;
                        default:
                            product_tile<Algebra, 1, 8>(x, n, block, width, y, column);
                            break;
                    }
                }
        }
        done += take;
    }
}

struct ScaledSum {
    static constexpr Domain kDomain = Domain::exponential;
    static constexpr double kZero = 0.0, kOne = 1.0, kNothing = 0.0;

    static DF_INLINE Vec combine(Vec acc, Vec value, Vec entry) { return acc + value * entry; }
    static DF_INLINE double merge(double a, double b) { return a + b; }

    template <int L>
    static DF_INLINE void product(const double* const* x, std::size_t n, const double* block, std::size_t width,
                                  double* const* y) {
        product_rows<ScaledSum, L>(x, n, block, width, y);
    }

    // Scores to factors exp(score - highest); highest becomes the logarithm taken out. far collects scores out of
    // range.
    template <int L>
    static DF_INLINE void prepare(double* const* rows, std::size_t width, double* highest, IntVec* far) {
        for (int l = 0; l < L; ++l) highest[l] = highest[l] > -kInfinity ? highest[l] : 0.0;
        for (std::size_t i = 0; i < width; i += kLanes) {
            for (int l = 0; l < L; ++l) {
                const Vec below = load(rows[l] + i) - splat(highest[l]);
                far[l] |= less(below, splat(-kRange)) & less(splat(-kInfinity), below);
                store(rows[l] + i, exponential(below));
            }
        }
    }

    // rows *= node, then scaled to sum 1; taken is the sum before. If check, far collects entries that come close to
    // underflow.
    template <int L>
    static DF_INLINE void absorb(double* const* rows, const double* const* node, std::size_t width, double* taken,
                                 bool check, IntVec* far) {
        Vec total[L];
        for (int l = 0; l < L; ++l) total[l] = splat(0.0);
        for (std::size_t i = 0; i < width; i += kLanes) {
            for (int l = 0; l < L; ++l) {
                const Vec v = load(rows[l] + i) * load(node[l] + i);
                store(rows[l] + i, v);
                total[l] += v;
            }
        }
        double scale[L];
        reduce<Add, L>(total, taken);
        for (int l = 0; l < L; ++l) scale[l] = taken[l] > 0.0 ? 1.0 / taken[l] : 0.0;
        for (std::size_t i = 0; i < width; i += kLanes) {
            for (int l = 0; l < L; ++l) {
                const Vec v = load(rows[l] + i) * splat(scale[l]);
                store(rows[l] + i, v);
                if (check) far[l] |= less(v, splat(kSmallest)) & less(splat(0.0), v);
            }
        }
    }

    // What the backward programme multiplies at a node: its factors, the value so far, and the scale of the forward
    // row.
    template <int L>
    static DF_INLINE void pull_back(double* const* node, const double* const* beta, std::size_t width,
                                    const double* taken) {
        double scale[L];
        for (int l = 0; l < L; ++l) scale[l] = taken[l] > 0.0 ? 1.0 / taken[l] : 0.0;
        for (std::size_t i = 0; i < width; i += kLanes)
            for (int l = 0; l < L; ++l) store(node[l] + i, load(node[l] + i) * load(beta[l] + i) * splat(scale[l]));
    }
    template <int L>
    static DF_INLINE void settle(double* const*, std::size_t) {}

    // Of each state its marginal.
    static DF_INLINE void report(const double* alpha, const double* beta, std::size_t width, double, double* out) {
        for (std::size_t i = 0; i < width; i += kLanes) store(out + i, load(alpha + i) * load(beta + i));
    }
};

// Shared by the two algebras that add scores.
struct LogDomain {
    static constexpr Domain kDomain = Domain::logarithm;
    static constexpr double kZero = -kInfinity, kOne = 0.0;

    template <int L>
    static DF_INLINE void prepare(double* const*, std::size_t, double* highest, IntVec*) {
        for (int l = 0; l < L; ++l) highest[l] = 0.0;
    }

    template <int L>
    static DF_INLINE void shift_to_zero(double* const* rows, std::size_t width, double* highest) {
        Vec top[L];
        for (int l = 0; l < L; ++l) top[l] = splat(-kInfinity);
        for (std::size_t i = 0; i < width; i += kLanes)
            for (int l = 0; l < L; ++l) top[l] = larger(load(rows[l] + i), top[l]);
        reduce<Larger, L>(top, highest);
        double shift[L];
        for (int l = 0; l < L; ++l) shift[l] = highest[l] > -kInfinity ? highest[l] : 0.0;
        for (std::size_t i = 0; i < width; i += kLanes)
            for (int l = 0; l < L; ++l) store(rows[l] + i, load(rows[l] + i) - splat(shift[l]));
    }

    template <int L>
    static DF_INLINE void absorb(double* const* rows, const double* const* node, std::size_t width, double* taken, bool,
                                 IntVec*) {
        for (std::size_t i = 0; i < width; i += kLanes)
            for (int l = 0; l < L; ++l) store(rows[l] + i, load(rows[l] + i) + load(node[l] + i));
        shift_to_zero<L>(rows, width, taken);
    }

    template <int L>
    static DF_INLINE void pull_back(double* const* node, const double* const* beta, std::size_t width, const double*) {
        for (std::size_t i = 0; i < width; i += kLanes)
            for (int l = 0; l < L; ++l) store(node[l] + i, load(node[l] + i) + load(beta[l] + i));
    }
    template <int L>
    static DF_INLINE void settle(double* const* beta, std::size_t width) {
        double highest[L];
        shift_to_zero<L>(beta, width, highest);
    }

    // alpha + beta, shifted to maximum 0: the same up to a constant, and no large numbers.
    static DF_INLINE void meet(const double* alpha, const double* beta, std::size_t width, double* out) {
        for (std::size_t i = 0; i < width; i += kLanes) store(out + i, load(alpha + i) + load(beta + i));
        double highest;
        shift_to_zero<1>(&out, width, &highest);
    }
};

struct MaxPlus : LogDomain {
    static constexpr double kNothing = -kInfinity;

    static DF_INLINE Vec combine(Vec acc, Vec value, Vec entry) { return larger(value + entry, acc); }
    static DF_INLINE double merge(double a, double b) { return a > b ? a : b; }

    template <int L>
    static DF_INLINE void product(const double* const* x, std::size_t n, const double* block, std::size_t width,
                                  double* const* y) {
        product_rows<MaxPlus, L>(x, n, block, width, y);
    }

    // Of each state the best score of a labelling through it.
    static DF_INLINE void report(const double* alpha, const double* beta, std::size_t width, double best, double* out) {
        meet(alpha, beta, width, out);
        for (std::size_t i = 0; i < width; i += kLanes) store(out + i, load(out + i) + splat(best));
    }
};

struct LogSum : LogDomain {
    static constexpr double kNothing = 0.0;

    static DF_INLINE double merge(double a, double b) { return a + b; }

    // First the maximum of each column, then the sum of exponentials below it.
    template <int L>
    static DF_INLINE void product(const double* const* x, std::size_t n, const double* block, std::size_t width,
                                  double* const* y) {
        product_rows<MaxPlus, L>(x, n, block, width, y);
        for (int l = 0; l < L; ++l) {
            for (std::size_t column = 0; column < width; column += kLanes) {
                const Vec highest = load(y[l] + column);
                const Vec shift = select(less(splat(-kInfinity), highest), highest, splat(0.0));
                Vec total = splat(0.0);
                for (std::size_t i = 0; i < n; ++i)
                    total += exponential(splat(x[l][i]) + load(block + i * width + column) - shift);
                for (std::size_t k = 0; k < kLanes; ++k) y[l][column + k] = shift[k] + std::log(total[k]);
            }
        }
    }

    // Of each state its marginal, normalised row by row so that no large number is subtracted.
    static DF_INLINE void report(const double* alpha, const double* beta, std::size_t width, double, double* out) {
        meet(alpha, beta, width, out);
        const double total = exponentials(out, 0.0, width, out);
        for (std::size_t i = 0; i < width; i += kLanes) store(out + i, load(out + i) / splat(total));
    }
};

}  // namespace
}  // namespace dualfield
