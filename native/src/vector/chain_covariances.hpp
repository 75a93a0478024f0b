// Covariances of all labels and transitions of a chain of order 1, given the probabilities of its steps: see
// chain_slope.hpp.
#pragma once

#include <cstddef>

#include "dualfield/structures/chains/chain_slope.hpp"
#include "vector.hpp"

namespace dualfield {
namespace {

// C = A B for R rows; A [.][depth], B [depth][columns], columns in whole vectors.
template <int R>
DF_INLINE void multiply_rows(const double* a, std::size_t a_stride, std::size_t depth, const double* b,
                             std::size_t b_stride, double* c, std::size_t c_stride, std::size_t columns) {
    std::size_t j = 0;
    for (; j + 2 * kLanes <= columns; j += 2 * kLanes) {
        Vec low[R] = {}, high[R] = {};
        for (std::size_t k = 0; k < depth; ++k) {
            const Vec first = load(b + k * b_stride + j), second = load(b + k * b_stride + j + kLanes);
            for (int r = 0; r < R; ++r) {
                const Vec x = splat(a[r * a_stride + k]);
                low[r] += x * first;
                high[r] += x * second;
            }
        }
        for (int r = 0; r < R; ++r) {
            store(c + r * c_stride + j, low[r]);
            store(c + r * c_stride + j + kLanes, high[r]);
        }
    }
    for (; j < columns; j += kLanes)
        for (int r = 0; r < R; ++r) {
            Vec sum = splat(0.0);
            for (std::size_t k = 0; k < depth; ++k) sum += splat(a[r * a_stride + k]) * load(b + k * b_stride + j);
            store(c + r * c_stride + j, sum);
        }
}

DF_INLINE void multiply(const double* a, std::size_t a_stride, std::size_t rows, std::size_t depth, const double* b,
                        std::size_t b_stride, double* c, std::size_t c_stride, std::size_t columns) {
    std::size_t r = 0;
    for (; r + 4 <= rows; r += 4)
        multiply_rows<4>(a + r * a_stride, a_stride, depth, b, b_stride, c + r * c_stride, c_stride, columns);
    for (; r < rows; ++r)
        multiply_rows<1>(a + r * a_stride, a_stride, depth, b, b_stride, c + r * c_stride, c_stride, columns);
}

// Of labels: the probabilities of later ones given an earlier one are products of steps.
DF_INLINE void label_covariances(const ChainCovarianceTask& task) {
    const std::size_t n = task.n_labels, width = task.width, size = task.size(), table = n * width;
    double *from = task.memory, *to = task.memory + table;
    for (std::size_t s = 0; s < task.length; ++s) {
        const double* own = task.states + s * width;
        for (std::size_t t = s; t < task.length; ++t) {
            const double* given = from;
            if (t == s + 1) given = task.shares + s * table;
            if (t > s + 1) {
                const double* before = t == s + 2 ? task.shares + s * table : from;
                multiply(before, width, n, n, task.shares + (t - 1) * table, width, to, width, width);
                double* old = from;
                from = to;
                to = old;
                given = from;
            }
            const double* there = task.states + t * width;
            for (std::size_t a = 0; a < n; ++a) {
                double* out = task.out + (s * width + a) * size + t * width;
                const Vec mass = splat(own[a]);
                for (std::size_t j = 0; j < width; j += kLanes) {
                    const Vec share = t > s ? load(given + a * width + j) : splat(0.0);
                    store(out + j, mass * (share - load(there + j)));
                }
                if (t == s) out[a] += own[a];
            }
        }
    }
}

// Of transitions with labels. Those that end before a label are counted from left to right, where the counts are the
// rows of the answer; those that begin at it or behind it from right to left, given the label.
DF_INLINE void transition_covariances(const ChainCovarianceTask& task) {
    const std::size_t n = task.n_labels, width = task.width, size = task.size(), table = n * width;
    const std::size_t begin = task.length * width;
    double *mixed = task.out + begin * size, *edges = mixed + begin;
    double *behind = task.memory, *next = behind + n * table, *mean = next + n * table;
    for (std::size_t e = 0; e < table; ++e) {
        mean[e] = 0.0;
        for (std::size_t j = 0; j < width; j += kLanes) store(mixed + e * size + j, splat(0.0));
        for (std::size_t j = 0; j < table; j += kLanes) store(edges + e * size + j, splat(0.0));
    }
    for (std::size_t u = 0; u + 1 < task.length; ++u) {
        const double *step = task.shares + u * table, *mass = task.states + u * width;
        multiply(mixed + u * width, size, table, n, step, width, mixed + (u + 1) * width, size, width);
        for (std::size_t a = 0; a < n; ++a)
            for (std::size_t b = 0; b < n; ++b) {
                const double p = mass[a] * step[a * width + b];
                mean[a * width + b] += p;
                mixed[(a * width + b) * size + (u + 1) * width + b] += p;
            }
    }
    for (std::size_t j = 0; j < n * table; j += kLanes) store(behind + j, splat(0.0));
    for (std::size_t u = task.length; u-- > 0;) {
        const double* mass = task.states + u * width;
        if (u + 1 < task.length) {
            const double* step = task.shares + u * table;
            for (std::size_t a = 0; a < n; ++a)
                for (std::size_t b = 0; b < n; ++b) {
                    const Vec p = splat(mass[a] * step[a * width + b]);
                    double* out = edges + (a * width + b) * size;
                    for (std::size_t j = 0; j < table; j += kLanes)
                        store(out + j, load(out + j) + p * load(behind + b * table + j));
                }
            multiply(step, width, n, n, behind, table, next, table, table);
            for (std::size_t c = 0; c < n; ++c)
                for (std::size_t b = 0; b < n; ++b) next[c * table + c * width + b] += step[c * width + b];
            double* old = behind;
            behind = next;
            next = old;
        }
        for (std::size_t e = 0; e < table; ++e) {
            double* out = mixed + e * size + u * width;
            for (std::size_t c = 0; c < n; ++c) out[c] += mass[c] * (behind[c * table + e] - mean[e]);
        }
    }
    // Pairs of transitions in both orders, and each with itself.
    for (std::size_t e = 0; e < table; ++e) {
        for (std::size_t f = 0; f < e; ++f) {
            const double sum = edges[e * size + f] + edges[f * size + e] - mean[e] * mean[f];
            edges[e * size + f] = edges[f * size + e] = sum;
        }
        edges[e * size + e] = 2.0 * edges[e * size + e] + mean[e] * (1.0 - mean[e]);
    }
}

void chain_covariances(const ChainCovarianceTask& task) {
    label_covariances(task);
    transition_covariances(task);
}

}  // namespace
}  // namespace dualfield
