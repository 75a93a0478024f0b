// Kernel rows times coefficients: scores[r][j] += sum_i row_i[j] coefficient[i][r], for few r and many j.
#pragma once

#include <cstddef>

#include "dualfield/vector/routines.hpp"
#include "wide.hpp"

namespace dualfield {
namespace {

// G score rows by V vectors of columns, all sums in registers.
template <class T, int G, int V>
DF_INLINE void expand_tile(const T* const* rows, std::size_t n, const T* coefficients, std::size_t coefficient_stride,
                           T* scores, std::size_t stride, std::size_t j) {
    Wide<T> sum[G][V];
    for (int g = 0; g < G; ++g)
        for (int v = 0; v < V; ++v) sum[g][v] = load(scores + static_cast<std::size_t>(g) * stride + j + kWide<T> * v);
    for (std::size_t i = 0; i < n; ++i, coefficients += coefficient_stride) {
        const T* row = rows[i] + j;
        Wide<T> entry[V];
        for (int v = 0; v < V; ++v) entry[v] = load(row + kWide<T> * v);
        for (int g = 0; g < G; ++g) {
            const Wide<T> factor = wide(coefficients[g]);
            for (int v = 0; v < V; ++v) sum[g][v] += entry[v] * factor;
        }
    }
    for (int g = 0; g < G; ++g)
        for (int v = 0; v < V; ++v) store(scores + static_cast<std::size_t>(g) * stride + j + kWide<T> * v, sum[g][v]);
}

template <class T, int G>
DF_CASE void expand_group(const T* const* rows, std::size_t n, const T* coefficients, std::size_t coefficient_stride,
                          T* scores, std::size_t stride, std::size_t first, std::size_t last) {
    constexpr int V = G == 1 ? 6 : G == 2 ? 4 : G <= 4 ? 3 : 2;
    std::size_t j = first;
    for (; j + kWide<T> * V <= last; j += kWide<T> * V)
        expand_tile<T, G, V>(rows, n, coefficients, coefficient_stride, scores, stride, j);
    for (; j + kWide<T> <= last; j += kWide<T>)
        expand_tile<T, G, 1>(rows, n, coefficients, coefficient_stride, scores, stride, j);
    for (; j < last; ++j)
        for (int g = 0; g < G; ++g) {
            T sum = scores[static_cast<std::size_t>(g) * stride + j];
            for (std::size_t i = 0; i < n; ++i) sum += rows[i][j] * coefficients[i * coefficient_stride + g];
            scores[static_cast<std::size_t>(g) * stride + j] = sum;
        }
}

template <class T>
DF_INLINE void expand_block(const T* const* rows, std::size_t n, const T* coefficients, std::size_t coefficient_stride,
                            std::size_t n_scores, T* scores, std::size_t stride, std::size_t first, std::size_t last) {
    const std::size_t groups = (n_scores + 5) / 6;
    for (std::size_t group = 0, done = 0; group < groups; ++group) {
        const std::size_t take = (n_scores - done + (groups - group) - 1) / (groups - group);
        const T* factors = coefficients + done;
        T* target = scores + done * stride;
        switch (take) {
            case 1:
                expand_group<T, 1>(rows, n, factors, coefficient_stride, target, stride, first, last);
                break;
            case 2:
                expand_group<T, 2>(rows, n, factors, coefficient_stride, target, stride, first, last);
                break;
            case 3:
                expand_group<T, 3>(rows, n, factors, coefficient_stride, target, stride, first, last);
                break;
            case 4:
                expand_group<T, 4>(rows, n, factors, coefficient_stride, target, stride, first, last);
                break;
            case 5:
                expand_group<T, 5>(rows, n, factors, coefficient_stride, target, stride, first, last);
                break;
            default:
                expand_group<T, 6>(rows, n, factors, coefficient_stride, target, stride, first, last);
        }
        done += take;
    }
}

// In blocks of rows and columns that stay in the second cache for all groups of score rows. The next rows are fetched
// meanwhile: each contributes a few lines only, too few for the hardware to see a stream.
template <class T>
void expand(const T* const* rows, std::size_t n, const T* coefficients, std::size_t coefficient_stride,
            std::size_t n_scores, T* scores, std::size_t stride, std::size_t first, std::size_t last) {
    constexpr std::size_t kRows = 96, kColumns = 768 / sizeof(T), kLine = 64 / sizeof(T);
    for (std::size_t column = first; column < last; column += kColumns) {
        const std::size_t end = column + kColumns < last ? column + kColumns : last;
        for (std::size_t row = 0; row < n; row += kRows) {
            const std::size_t here = n - row < kRows ? n - row : kRows;
            for (std::size_t next = row + kRows; next < n && next < row + 2 * kRows; ++next)
                for (std::size_t j = column; j < end; j += kLine) __builtin_prefetch(rows[next] + j, 0, 2);
            expand_block(rows + row, here, coefficients + row * coefficient_stride, coefficient_stride, n_scores,
                         scores, stride, column, end);
        }
    }
}

}  // namespace
}  // namespace dualfield
