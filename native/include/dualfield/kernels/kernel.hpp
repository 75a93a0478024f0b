// Mercer kernels between points: which function, and the points laid out for the vector code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dualfield/core/memory.hpp"
#include "dualfield/kernels/bit_points.hpp"

namespace dualfield {

// k(x, z) as in scikit-learn's pairwise kernels:
//   linear <x, z>; poly (gamma <x, z> + coef0)^degree; sigmoid tanh(gamma <x, z> + coef0);
//   rbf exp(-gamma |x - z|^2); laplacian exp(-gamma sum_f |x_f - z_f|)
enum class KernelKind { linear, poly, rbf, laplacian, sigmoid };

struct KernelFunction {
    KernelKind kind = KernelKind::rbf;
    double gamma = 1.0, coef0 = 0.0, degree = 3.0;
};

// Columns are computed in panels of one cache line.
template <class T>
inline constexpr std::size_t kPanel = 64 / sizeof(T);

template <class T>
constexpr std::size_t padded_to_panels(std::size_t n) {
    return (n + kPanel<T> - 1) / kPanel<T> * kPanel<T>;
}

// A matrix of points, dense [n][n_features] or in compressed rows (indptr not null).
template <class T>
struct Matrix {
    std::size_t n = 0, n_features = 0;
    const T* values = nullptr;
    const std::int64_t* indptr = nullptr;
    const std::int32_t* indices = nullptr;
};

// Points scaled so that gamma is 1, moved so that rounding hurts least, and kept twice: by rows, and in panels of
// columns [panel][feature][lane]. Compressed rows stay compressed where that saves memory. Points of zeros and ones may
// be kept as bits instead, with a table of the kernel's values: nothing is rounded then but these.
template <class T>
class Points {
  public:
    // shift: subtracted from every point, for kernels of differences; the training points' means, or none.
    template <class S>
    Points(const Matrix<S>& matrix, const KernelFunction& function, std::span<const double> shift, bool with_panels);
    Points(BitMatrix bits, const KernelFunction& function);

    std::size_t size() const { return n_; }
    std::size_t n_features() const { return n_features_; }
    bool is_sparse() const { return !indptr_.empty(); }
    bool is_bits() const { return !table_.empty(); }

    const T* row(std::size_t i) const { return rows_.data() + i * n_features_; }
    T norm(std::size_t i) const { return norms_[i]; }
    const T* norms() const { return norms_.data(); }
    const T* panels() const { return panels_.data(); }
    const BitMatrix& bits() const { return bits_; }
    const std::vector<T>& table() const { return table_; }  // the kernel's value for each count of bits

    // Compressed rows, and compressed columns for the side that is kept in panels.
    std::vector<std::int64_t> indptr_, column_start_;
    std::vector<std::int32_t> indices_, column_rows_;
    std::vector<T> values_, column_values_;

  private:
    std::size_t n_, n_features_;
    Aligned<T> rows_, panels_, norms_;  // norms: squared lengths, zero in the padding
    BitMatrix bits_;
    std::vector<T> table_;
};

// Column means of a dense matrix, for kernels that depend on differences only; empty otherwise.
template <class S>
std::vector<double> natural_shift(const Matrix<S>& matrix, const KernelFunction& function);

// out[i * stride + j - first] = k(row points[i], column j) for columns [first, last), first a multiple of kPanel.
// Panels are written whole, so that out needs stride >= padded width. symmetric_diagonal: set k = 1 where rows[i] == j
// for rbf and laplacian, which rounding would miss. Both sets must be kept in the same form.
template <class T>
void kernel_block(const KernelFunction& function, const Points<T>& rows, std::span<const std::int32_t> points,
                  const Points<T>& columns, std::size_t first, std::size_t last, T* out, std::size_t stride);

// k(x, x) for every point.
template <class T>
void kernel_diagonal(const KernelFunction& function, const Points<T>& points, T* out);

}  // namespace dualfield
