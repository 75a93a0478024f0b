// The passes of arc_task.hpp: products of exponentials, logarithms, or maxima of sums.
//
// Spans are visited by width, so that neighbouring ones do not wait for each other. Entries that are not there yet are
// the zero of the algebra; vectors may reach beyond the last split of a span, where one side is such a zero on the way
// up, and where nobody reads what is written on the way down.
#pragma once

#include <cmath>
#include <cstddef>

#include "dualfield/structures/parse_trees/arc_task.hpp"
#include "vector.hpp"

namespace dualfield {
namespace {

struct ArcProducts {
    static constexpr double kZero = 0.0, kOne = 1.0;
    template <class T>
    static DF_INLINE T times(T a, T b) {
        return a * b;
    }
    static DF_INLINE Vec plus(Vec a, Vec b) { return a + b; }
    static DF_INLINE double plus(double a, double b) { return a + b; }
    using Reduce = Add;
};

struct ArcMaxima {
    static constexpr double kZero = -kInfinity, kOne = 0.0;
    template <class T>
    static DF_INLINE T times(T a, T b) {
        return a + b;
    }
    static DF_INLINE Vec plus(Vec a, Vec b) { return larger(a, b); }
    static DF_INLINE double plus(double a, double b) { return a > b ? a : b; }
    using Reduce = Larger;
};

struct ArcLogarithms : ArcMaxima {
    static double plus(double a, double b) {
        const double highest = a > b ? a : b;
        return highest > -kInfinity ? highest + std::log(std::exp(a - highest) + std::exp(b - highest)) : highest;
    }
};

// The three rows of entries that are combined over the splits of a span, each with another one.
struct SpanRows {
    const double *right, *left_behind;  // [k], [k]: the latter of the span from k + 1 on
    const double *to_end, *right_by_end;
    const double *left, *to_begin;
};

DF_INLINE SpanRows span_rows(const ArcTask& task, std::size_t stride, std::size_t i, std::size_t j) {
    const double* const* up = task.up;
    return {up[ArcTask::kRight] + i * stride, up[ArcTask::kLeftByEnd] + j * stride + 1,
            up[ArcTask::kToEnd] + i * stride, up[ArcTask::kRightByEnd] + j * stride,
            up[ArcTask::kLeft] + i * stride,  up[ArcTask::kToBeginByEnd] + j * stride};
}

// out[0..2] = the three combinations over k in [i, j).
template <class A>
DF_INLINE void combine(const SpanRows& rows, std::size_t i, std::size_t j, double* out) {
    Vec sums[4] = {splat(A::kZero), splat(A::kZero), splat(A::kZero), splat(A::kZero)};
    for (std::size_t k = i; k < j; k += kLanes) {
        sums[0] = A::plus(sums[0], A::times(load(rows.right + k), load(rows.left_behind + k)));
        sums[1] = A::plus(sums[1], A::times(load(rows.to_end + k), load(rows.right_by_end + k)));
        sums[2] = A::plus(sums[2], A::times(load(rows.left + k), load(rows.to_begin + k)));
    }
    reduce<typename A::Reduce>(sums, out);
}

template <>
inline void combine<ArcLogarithms>(const SpanRows& rows, std::size_t i, std::size_t j, double* out) {
    combine<ArcMaxima>(rows, i, j, out);
    double shift[3];
    for (int s = 0; s < 3; ++s) shift[s] = out[s] > -kInfinity ? out[s] : 0.0;
    Vec sums[4] = {splat(0.0), splat(0.0), splat(0.0), splat(0.0)};
    for (std::size_t k = i; k < j; k += kLanes) {
        sums[0] = sums[0] + exponential(load(rows.right + k) + load(rows.left_behind + k) - splat(shift[0]));
        sums[1] = sums[1] + exponential(load(rows.to_end + k) + load(rows.right_by_end + k) - splat(shift[1]));
        sums[2] = sums[2] + exponential(load(rows.left + k) + load(rows.to_begin + k) - splat(shift[2]));
    }
    double found[4];
    reduce<Add>(sums, found);
    for (int s = 0; s < 3; ++s) out[s] = out[s] > -kInfinity ? shift[s] + std::log(found[s]) : -kInfinity;
}

template <class A>
void arcs_up(ArcTask& task) {
    const std::size_t n = task.n_words, size = ArcTask::chart_size(n), stride = ArcTask::stride(n);
    const auto at = [&](ArcTask::Chart chart, std::size_t row, std::size_t column) -> double& {
        return task.up[chart][row * stride + column];
    };
    for (double* chart : task.up)
        for (std::size_t x = 0; x < size; x += kLanes) store(chart + x, splat(A::kZero));
    for (std::size_t i = 0; i <= n; ++i)
        at(ArcTask::kRight, i, i) = at(ArcTask::kLeft, i, i) = at(ArcTask::kLeftByEnd, i, i) = A::kOne;
    const std::size_t first = task.is_single ? 1 : 0;
    for (std::size_t width = 1; width + first <= n; ++width)
        for (std::size_t i = first; i + width <= n; ++i) {
            const std::size_t j = i + width;
            double found[4];
            combine<A>(span_rows(task, stride, i, j), i, j, found);
            const double to_end = A::times(found[0], task.arcs[j * stride + i]);
            const double to_begin = A::times(found[0], task.arcs[i * stride + j]);
            at(ArcTask::kBoth, i, j) = found[0];
            at(ArcTask::kToEnd, i, j) = to_end;
            at(ArcTask::kToBeginByEnd, j, i) = to_begin;
            at(ArcTask::kRight, i, j) = at(ArcTask::kRightByEnd, j, i) = A::plus(found[1], to_end);
            at(ArcTask::kLeft, i, j) = at(ArcTask::kLeftByEnd, j, i) = A::plus(found[2], to_begin);
        }
    if (!task.is_single || n == 0) {
        task.total = at(ArcTask::kRight, 0, n);
        return;
    }
    task.total = A::kZero;
    for (std::size_t r = 1; r <= n; ++r) {
        const double below = A::times(at(ArcTask::kLeft, 1, r), at(ArcTask::kRight, r, n));
        task.total = A::plus(task.total, A::times(task.arcs[r * stride], below));
    }
}

// y = y + g x, by whole vectors.
template <class A>
DF_INLINE void add_to(double* y, Vec g, const double* x) {
    store(y, A::plus(load(y), A::times(g, load(x))));
}

// What is outside of the entries, divided by the total: `down` has a chart for each of the first six of `up`.
template <class A>
void arcs_down(ArcTask& task) {
    const std::size_t n = task.n_words, size = ArcTask::chart_size(n), stride = ArcTask::stride(n);
    for (double* chart : task.down)
        for (std::size_t x = 0; x < size; x += kLanes) store(chart + x, splat(A::kZero));
    for (std::size_t x = 0; x < size; x += kLanes) store(task.answer + x, splat(A::kZero));
    const auto up = [&](ArcTask::Chart chart, std::size_t row) { return task.up[chart] + row * stride; };
    const auto down = [&](ArcTask::Chart chart, std::size_t row) { return task.down[chart] + row * stride; };
    const double top = A::kOne == 1.0 ? 1.0 / task.total : 0.0;
    const std::size_t first = task.is_single ? 1 : 0;
    if (!task.is_single) down(ArcTask::kRight, 0)[n] = top;
    for (std::size_t r = 1; task.is_single && r <= n; ++r) {
        const double left = up(ArcTask::kLeft, 1)[r], right = up(ArcTask::kRight, r)[n];
        const double arc = A::times(task.arcs[r * stride], top);
        task.answer[r * stride] = A::times(arc, A::times(left, right));
        down(ArcTask::kLeft, 1)[r] = A::times(arc, right);
        down(ArcTask::kRight, r)[n] = A::plus(down(ArcTask::kRight, r)[n], A::times(arc, left));
    }
    for (std::size_t width = n - first; width >= 1; --width)
        for (std::size_t i = first; i + width <= n; ++i) {
            const std::size_t j = i + width;
            const double right = A::plus(down(ArcTask::kRight, i)[j], down(ArcTask::kRightByEnd, j)[i]);
            const double left = A::plus(down(ArcTask::kLeft, i)[j], down(ArcTask::kLeftByEnd, j)[i]);
            const double to_end = A::plus(down(ArcTask::kToEnd, i)[j], right);
            const double to_begin = A::plus(down(ArcTask::kToBeginByEnd, j)[i], left);
            task.answer[j * stride + i] = A::times(to_end, up(ArcTask::kToEnd, i)[j]);
            task.answer[i * stride + j] = A::times(to_begin, up(ArcTask::kToBeginByEnd, j)[i]);
            const double both =
                A::plus(A::times(to_end, task.arcs[j * stride + i]), A::times(to_begin, task.arcs[i * stride + j]));
            const Vec g = splat(both), g_right = splat(right), g_left = splat(left);
            const SpanRows rows = span_rows(task, stride, i, j);
            for (std::size_t k = i; k < j; k += kLanes) {
                add_to<A>(down(ArcTask::kRight, i) + k, g, rows.left_behind + k);
                add_to<A>(down(ArcTask::kLeftByEnd, j) + k + 1, g, rows.right + k);
                add_to<A>(down(ArcTask::kToEnd, i) + k, g_right, rows.right_by_end + k);
                add_to<A>(down(ArcTask::kRightByEnd, j) + k, g_right, rows.to_end + k);
                add_to<A>(down(ArcTask::kLeft, i) + k, g_left, rows.to_begin + k);
                add_to<A>(down(ArcTask::kToBeginByEnd, j) + k, g_left, rows.left + k);
            }
        }
}

// y and z += share exp(a + b - total), by whole vectors.
DF_INLINE void add_shares(double* y, double* z, double share, const double* a, const double* b, double total) {
    const Vec p = splat(share) * exponential(load(a) + load(b) - splat(total));
    store(y, load(y) + p);
    store(z, load(z) + p);
}

// The same after a pass up in logarithms; `down` has probabilities of entries.
void arcs_down_logarithms(ArcTask& task) {
    const std::size_t n = task.n_words, size = ArcTask::chart_size(n), stride = ArcTask::stride(n);
    for (double* chart : task.down)
        for (std::size_t x = 0; x < size; x += kLanes) store(chart + x, splat(0.0));
    for (std::size_t x = 0; x < size; x += kLanes) store(task.answer + x, splat(0.0));
    const auto up = [&](ArcTask::Chart chart, std::size_t row) { return task.up[chart] + row * stride; };
    const auto down = [&](ArcTask::Chart chart, std::size_t row) { return task.down[chart] + row * stride; };
    const std::size_t first = task.is_single ? 1 : 0;
    if (!task.is_single) down(ArcTask::kRight, 0)[n] = 1.0;
    for (std::size_t r = 1; task.is_single && r <= n; ++r) {
        const double score = task.arcs[r * stride] + up(ArcTask::kLeft, 1)[r] + up(ArcTask::kRight, r)[n];
        const double p = std::exp(score - task.total);
        task.answer[r * stride] = p;
        down(ArcTask::kLeft, 1)[r] = p;
        down(ArcTask::kRight, r)[n] += p;
    }
    const auto share = [](double whole, double part, double total) {
        return whole > 0.0 ? whole * std::exp(part - total) : 0.0;
    };
    for (std::size_t width = n - first; width >= 1; --width)
        for (std::size_t i = first; i + width <= n; ++i) {
            const std::size_t j = i + width;
            const double right = down(ArcTask::kRight, i)[j] + down(ArcTask::kRightByEnd, j)[i];
            const double left = down(ArcTask::kLeft, i)[j] + down(ArcTask::kLeftByEnd, j)[i];
            const double all_right = up(ArcTask::kRight, i)[j], all_left = up(ArcTask::kLeft, i)[j];
            const double to_end = down(ArcTask::kToEnd, i)[j] + share(right, up(ArcTask::kToEnd, i)[j], all_right);
            const double to_begin =
                down(ArcTask::kToBeginByEnd, j)[i] + share(left, up(ArcTask::kToBeginByEnd, j)[i], all_left);
            task.answer[j * stride + i] = to_end;
            task.answer[i * stride + j] = to_begin;
            const double both = to_end + to_begin, all = up(ArcTask::kBoth, i)[j];
            const SpanRows rows = span_rows(task, stride, i, j);
            for (std::size_t k = i; both > 0.0 && k < j; k += kLanes)
                add_shares(down(ArcTask::kRight, i) + k, down(ArcTask::kLeftByEnd, j) + k + 1, both, rows.right + k,
                           rows.left_behind + k, all);
            for (std::size_t k = i; right > 0.0 && k < j; k += kLanes)
                add_shares(down(ArcTask::kToEnd, i) + k, down(ArcTask::kRightByEnd, j) + k, right, rows.to_end + k,
                           rows.right_by_end + k, all_right);
            for (std::size_t k = i; left > 0.0 && k < j; k += kLanes)
                add_shares(down(ArcTask::kLeft, i) + k, down(ArcTask::kToBeginByEnd, j) + k, left, rows.left + k,
                           rows.to_begin + k, all_left);
        }
}

}  // namespace
}  // namespace dualfield
