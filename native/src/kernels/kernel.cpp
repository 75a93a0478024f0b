#include "dualfield/kernels/kernel.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "dualfield/vector/routines.hpp"

namespace dualfield {

namespace {

// Up to here differences are formed entry by entry, which loses no precision; beyond, products are much faster.
constexpr std::size_t kDirectFeatures = 24;

bool of_differences(KernelKind kind) {
    return kind == KernelKind::rbf || kind == KernelKind::laplacian;
}

// The factor that makes gamma 1.
double scale_of(const KernelFunction& function) {
    switch (function.kind) {
        case KernelKind::linear:
            return 1.0;
        case KernelKind::laplacian:
            return function.gamma;
        default:
            return std::sqrt(function.gamma);
    }
}

// From <x, z> to the kernel, for the kinds whose function the tiles do not apply themselves.
template <class T>
void finish_row(const KernelFunction& function, T* row, std::size_t n) {
    const T coef0 = static_cast<T>(function.coef0);
    if (function.kind == KernelKind::sigmoid) {
        for (std::size_t j = 0; j < n; ++j) row[j] = std::tanh(row[j] + coef0);
    } else if (function.kind == KernelKind::poly) {
        const double degree = function.degree;
        if (degree == std::floor(degree) && degree >= 0.0 && degree <= 16.0) {
            for (std::size_t j = 0; j < n; ++j) {
                const T base = row[j] + coef0;
                T power = T(1);
                for (int d = 0; d < static_cast<int>(degree); ++d) power *= base;
                row[j] = power;
            }
        } else {
            for (std::size_t j = 0; j < n; ++j) row[j] = std::pow(row[j] + coef0, static_cast<T>(degree));
        }
    }
}

template <class T>
void sparse_block(const KernelFunction& function, const Points<T>& rows, std::span<const std::int32_t> points,
                  const Points<T>& columns, std::size_t first, std::size_t last, T* out, std::size_t stride) {
    const std::size_t width = last - first;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const std::size_t point = static_cast<std::size_t>(points[i]);
        T* row = out + i * stride;
        std::fill_n(row, padded_to_panels<T>(width), T(0));
        for (std::int64_t k = rows.indptr_[point]; k < rows.indptr_[point + 1]; ++k) {
            const std::size_t feature = static_cast<std::size_t>(rows.indices_[static_cast<std::size_t>(k)]);
            const T value = rows.values_[static_cast<std::size_t>(k)];
            const auto begin = columns.column_rows_.begin();
            const auto from =
                std::lower_bound(begin + columns.column_start_[feature], begin + columns.column_start_[feature + 1],
                                 static_cast<std::int32_t>(first));
            const auto end = begin + columns.column_start_[feature + 1];
            for (auto at = from; at != end && static_cast<std::size_t>(*at) < last; ++at)
                row[static_cast<std::size_t>(*at) - first] +=
                    value * columns.column_values_[static_cast<std::size_t>(at - begin)];
        }
        if (function.kind == KernelKind::rbf) {
            for (std::size_t j = 0; j < width; ++j)
                row[j] = -std::max(rows.norm(point) + columns.norm(first + j) - 2 * row[j], T(0));
            routines().kernel<T>().exponential_row(row, width);
        } else {
            finish_row(function, row, width);
        }
    }
}

template <class T>
void bit_block(const KernelFunction& function, const Points<T>& rows, std::span<const std::int32_t> points,
               const Points<T>& columns, std::size_t first, std::size_t last, T* out, std::size_t stride) {
    const std::size_t width = last - first;
    BitRow<T> task{.point = nullptr,
                   .columns = columns.bits().row(first),
                   .n_words = columns.bits().n_words,
                   .n = width,
                   .common = counts_common(function),
                   .table = columns.table().data(),
                   .out = nullptr};
    for (std::size_t i = 0; i < points.size(); ++i) {
        task.point = rows.bits().row(static_cast<std::size_t>(points[i]));
        task.out = out + i * stride;
        routines().kernel<T>().bit_row(task);
        std::fill(task.out + width, task.out + padded_to_panels<T>(width), T(0));
    }
}

}  // namespace

template <class S>
std::vector<double> natural_shift(const Matrix<S>& matrix, const KernelFunction& function) {
    std::vector<double> mean;
    if (!of_differences(function.kind) || matrix.indptr || matrix.n == 0) return mean;
    mean.assign(matrix.n_features, 0.0);
    for (std::size_t i = 0; i < matrix.n; ++i)
        for (std::size_t f = 0; f < matrix.n_features; ++f)
            mean[f] += static_cast<double>(matrix.values[i * matrix.n_features + f]);
    for (double& value : mean) value /= static_cast<double>(matrix.n);
    return mean;
}

template <class T>
template <class S>
Points<T>::Points(const Matrix<S>& matrix, const KernelFunction& function, std::span<const double> shift,
                  bool with_panels)
    : n_(matrix.n), n_features_(matrix.n_features), norms_(padded_to_panels<T>(matrix.n), T(0)) {
    const double scale = scale_of(function);
    if (matrix.indptr) {
        const std::size_t n_values = static_cast<std::size_t>(matrix.indptr[n_]);
        indptr_.assign(matrix.indptr, matrix.indptr + n_ + 1);
        indices_.assign(matrix.indices, matrix.indices + n_values);
        values_.resize(n_values);
        for (std::size_t k = 0; k < n_values; ++k)
            values_[k] = static_cast<T>(static_cast<double>(matrix.values[k]) * scale);
        for (std::size_t i = 0; i < n_; ++i) {
            double norm = 0.0;
            for (std::int64_t k = indptr_[i]; k < indptr_[i + 1]; ++k) {
                const double value = static_cast<double>(values_[static_cast<std::size_t>(k)]);
                norm += value * value;
            }
            norms_[i] = static_cast<T>(norm);
        }
        if (!with_panels) return;
        // Compressed columns: for each feature the points that have it, in order.
        column_start_.assign(n_features_ + 1, 0);
        for (const std::int32_t f : indices_) ++column_start_[static_cast<std::size_t>(f) + 1];
        for (std::size_t f = 0; f < n_features_; ++f) column_start_[f + 1] += column_start_[f];
        column_rows_.resize(n_values);
        column_values_.resize(n_values);
        std::vector<std::int64_t> next(column_start_.begin(), column_start_.end() - 1);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::int64_t k = indptr_[i]; k < indptr_[i + 1]; ++k) {
                const auto at =
                    static_cast<std::size_t>(next[static_cast<std::size_t>(indices_[static_cast<std::size_t>(k)])]++);
                column_rows_[at] = static_cast<std::int32_t>(i);
                column_values_[at] = values_[static_cast<std::size_t>(k)];
            }
        return;
    }
    rows_ = Aligned<T>(checked_product(n_, n_features_));
    for (std::size_t i = 0; i < n_; ++i) {
        double norm = 0.0;
        for (std::size_t f = 0; f < n_features_; ++f) {
            const double moved =
                static_cast<double>(matrix.values[i * n_features_ + f]) - (shift.empty() ? 0.0 : shift[f]);
            const T value = static_cast<T>(moved * scale);
            rows_[i * n_features_ + f] = value;
            norm += static_cast<double>(value) * static_cast<double>(value);
        }
        norms_[i] = static_cast<T>(norm);
    }
    if (!with_panels) return;
    const std::size_t n_panels = padded_to_panels<T>(n_) / kPanel<T>;
    panels_ = Aligned<T>(checked_product(n_panels, n_features_, kPanel<T>));
    for (std::size_t panel = 0; panel < n_panels; ++panel)
        for (std::size_t lane = 0; lane < kPanel<T>; ++lane) {
            const std::size_t i = panel * kPanel<T> + lane;
            T* target = panels_.data() + panel * n_features_ * kPanel<T> + lane;
            for (std::size_t f = 0; f < n_features_; ++f) target[f * kPanel<T>] = i < n_ ? row(i)[f] : T(0);
        }
}

template <class T>
Points<T>::Points(BitMatrix bits, const KernelFunction& function)
    : n_(bits.n), n_features_(bits.n_features), bits_(std::move(bits)), table_(count_table<T>(function, n_features_)) {}

template <class T>
void kernel_block(const KernelFunction& function, const Points<T>& rows, std::span<const std::int32_t> points,
                  const Points<T>& columns, std::size_t first, std::size_t last, T* out, std::size_t stride) {
    if (columns.is_bits()) return bit_block(function, rows, points, columns, first, last, out, stride);
    if (rows.is_sparse()) return sparse_block(function, rows, points, columns, first, last, out, stride);
    std::vector<const T*> row_pointers(points.size());
    std::vector<T> row_norms(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
        row_pointers[i] = rows.row(static_cast<std::size_t>(points[i]));
        row_norms[i] = rows.norm(static_cast<std::size_t>(points[i]));
    }
    const bool direct = columns.n_features() <= kDirectFeatures;
    TileTask<T> task{.sum = TileSum::products,
                     .form = TileForm::plain,
                     .n_features = columns.n_features(),
                     .rows = row_pointers.data(),
                     .row_norms = row_norms.data(),
                     .n_rows = points.size(),
                     .panels = columns.panels(),
                     .column_norms = columns.norms(),
                     .first_panel = first / kPanel<T>,
                     .last_panel = padded_to_panels<T>(last) / kPanel<T>,
                     .out = out,
                     .stride = stride};
    if (function.kind == KernelKind::laplacian) {
        task.sum = TileSum::absolute_differences;
        task.form = TileForm::exponential;
    } else if (function.kind == KernelKind::rbf) {
        task.sum = direct ? TileSum::squared_differences : TileSum::products;
        task.form = direct ? TileForm::exponential : TileForm::exponential_of_norms;
    }
    routines().kernel<T>().kernel_tiles(task);
    if (function.kind == KernelKind::poly || function.kind == KernelKind::sigmoid)
        for (std::size_t i = 0; i < points.size(); ++i) finish_row(function, out + i * stride, last - first);
    // A point's distance to itself is zero, which the sum of norms and products may miss by rounding.
    if (function.kind == KernelKind::rbf && !direct && &rows == &columns)
        for (std::size_t i = 0; i < points.size(); ++i) {
            const auto j = static_cast<std::size_t>(points[i]);
            if (first <= j && j < last) out[i * stride + j - first] = T(1);
        }
}

template <class T>
void kernel_diagonal(const KernelFunction& function, const Points<T>& points, T* out) {
    if (of_differences(function.kind)) {
        std::fill_n(out, points.size(), T(1));
        return;
    }
    if (points.is_bits()) {
        const BitMatrix& bits = points.bits();
        for (std::size_t i = 0; i < bits.n; ++i) {
            std::size_t count = 0;
            for (std::size_t w = 0; w < bits.n_words; ++w)
                count += static_cast<std::size_t>(std::popcount(bits.row(i)[w]));
            out[i] = points.table()[count];
        }
        return;
    }
    std::copy_n(points.norms(), points.size(), out);
    finish_row(function, out, points.size());
}

#define DUALFIELD_KERNEL(T)                                                                                  \
    template class Points<T>;                                                                                \
    template Points<T>::Points(const Matrix<float>&, const KernelFunction&, std::span<const double>, bool);  \
    template Points<T>::Points(const Matrix<double>&, const KernelFunction&, std::span<const double>, bool); \
    template std::vector<double> natural_shift(const Matrix<T>&, const KernelFunction&);                     \
    template void kernel_block(const KernelFunction&, const Points<T>&, std::span<const std::int32_t>,       \
                               const Points<T>&, std::size_t, std::size_t, T*, std::size_t);                 \
    template void kernel_diagonal(const KernelFunction&, const Points<T>&, T*);
DUALFIELD_KERNEL(float)
DUALFIELD_KERNEL(double)
#undef DUALFIELD_KERNEL

}  // namespace dualfield
