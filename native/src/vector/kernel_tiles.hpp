// Blocks of a kernel matrix: tiles of six rows by one panel of columns, sums in registers, the function applied last.
#pragma once

#include <cmath>
#include <cstddef>

#include "dualfield/vector/routines.hpp"
#include "wide.hpp"

namespace dualfield {
namespace {

struct Product {
    template <class V>
    static DF_INLINE V add(V sum, V a, V b) {
        return sum + a * b;
    }
};
struct SquaredDifference {
    template <class V>
    static DF_INLINE V add(V sum, V a, V b) {
        const V difference = a - b;
        return sum + difference * difference;
    }
};
struct AbsoluteDifference {
    template <class V>
    static DF_INLINE V add(V sum, V a, V b) {
        return sum + absolute(a - b);
    }
};

template <class T, class Sum, int R>
DF_INLINE void tile_sums(const T* const* rows, const T* panel, std::size_t n_features, Wide<T> (&sum)[R][2]) {
    for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = Wide<T>{};
    for (std::size_t f = 0; f < n_features; ++f, panel += kPanel<T>) {
        const Wide<T> left = load(panel), right = load(panel + kWide<T>);
        for (int r = 0; r < R; ++r) {
            const Wide<T> value = wide(rows[r][f]);
            sum[r][0] = Sum::add(sum[r][0], value, left);
            sum[r][1] = Sum::add(sum[r][1], value, right);
        }
    }
}

// The function of the kernel, on sums that lie in n_rows rows of one panel.
template <class T>
DF_CASE void apply_form(const TileTask<T>& task, const T* row_norms, const T* column_norms, std::size_t n_rows,
                        T* out) {
    for (std::size_t r = 0; r < n_rows; ++r, out += task.stride) {
        for (std::size_t column = 0; column < kPanel<T>; column += kWide<T>) {
            Wide<T> v = load(out + column);
            // |x|^2 + |z|^2 - 2 <x, z>, never negative.
            if (task.form == TileForm::exponential_of_norms)
                v = larger(wide(row_norms[r]) + load(column_norms + column) - (v + v), Wide<T>{});
            store(out + column, exponential(-v));
        }
    }
}

template <class T, class Sum, int R>
DF_CASE void tile_row(const TileTask<T>& task, std::size_t i) {
    const T* rows[R];
    for (int r = 0; r < R; ++r) rows[r] = task.rows[i + static_cast<std::size_t>(r)];
    for (std::size_t p = task.first_panel; p < task.last_panel; ++p) {
        Wide<T> sum[R][2];
        tile_sums<T, Sum, R>(rows, task.panels + p * task.n_features * kPanel<T>, task.n_features, sum);
        T* out = task.out + i * task.stride + (p - task.first_panel) * kPanel<T>;
        for (int r = 0; r < R; ++r)
            for (int half = 0; half < 2; ++half)
                store(out + static_cast<std::size_t>(r) * task.stride + kWide<T> * half, sum[r][half]);
        if (task.form != TileForm::plain)
            apply_form(task, task.row_norms + i, task.column_norms + p * kPanel<T>, R, out);
    }
}

template <class T, class Sum>
DF_INLINE void tile_rows(const TileTask<T>& task) {
    std::size_t i = 0;
    for (; i + 6 <= task.n_rows; i += 6) tile_row<T, Sum, 6>(task, i);
    switch (task.n_rows - i) {
        case 5:
            return tile_row<T, Sum, 5>(task, i);
        case 4:
            return tile_row<T, Sum, 4>(task, i);
        case 3:
            return tile_row<T, Sum, 3>(task, i);
        case 2:
            return tile_row<T, Sum, 2>(task, i);
        case 1:
            return tile_row<T, Sum, 1>(task, i);
        default:
            return;
    }
}

template <class T>
void kernel_tiles(const TileTask<T>& task) {
    switch (task.sum) {
        case TileSum::products:
            return tile_rows<T, Product>(task);
        case TileSum::squared_differences:
            return tile_rows<T, SquaredDifference>(task);
        case TileSum::absolute_differences:
            return tile_rows<T, AbsoluteDifference>(task);
    }
}

template <class T>
void exponential_row(T* row, std::size_t n) {
    std::size_t j = 0;
    for (; j + kWide<T> <= n; j += kWide<T>) store(row + j, exponential(load(row + j)));
    for (; j < n; ++j) row[j] = exponential(wide(row[j]))[0];
}

}  // namespace
}  // namespace dualfield
