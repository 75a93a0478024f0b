#include "dualfield/kernels/bit_points.hpp"

#include <cmath>

#include "dualfield/kernels/kernel.hpp"

namespace dualfield {

namespace {

constexpr std::size_t kWordBits = 64;

double value_at(const KernelFunction& function, double count) {
    switch (function.kind) {
        case KernelKind::linear:
            return count;
        case KernelKind::poly:
            return std::pow(function.gamma * count + function.coef0, function.degree);
        case KernelKind::sigmoid:
            return std::tanh(function.gamma * count + function.coef0);
        default:
            // Between zeros and ones the squared distance and the sum of absolute differences are the same.
            return std::exp(-function.gamma * count);
    }
}

// False if some value is neither 0 nor 1.
template <class S>
bool pack_dense(const S* values, std::size_t n, std::uint64_t* words) {
    for (std::size_t f = 0; f < n; f += kWordBits) {
        const std::size_t here = n - f < kWordBits ? n - f : kWordBits;
        std::uint64_t word = 0;
        bool other = false;
        for (std::size_t k = 0; k < here; ++k) {
            const S value = values[f + k];
            const bool one = value == S(1);
            other |= !one && !(value == S(0));
            word |= static_cast<std::uint64_t>(one) << k;
        }
        if (other) return false;
        words[f / kWordBits] = word;
    }
    return true;
}

}  // namespace

template <class S>
std::optional<BitMatrix> BitMatrix::pack(const Matrix<S>& matrix) {
    BitMatrix bits{.n = matrix.n,
                   .n_features = matrix.n_features,
                   .n_words = (matrix.n_features + kWordBits - 1) / kWordBits,
                   .words = {}};
    bits.words.assign(checked_product(bits.n, bits.n_words), 0);
    for (std::size_t i = 0; i < bits.n; ++i) {
        std::uint64_t* words = bits.words.data() + i * bits.n_words;
        if (!matrix.indptr) {
            if (!pack_dense(matrix.values + i * matrix.n_features, matrix.n_features, words)) return std::nullopt;
            continue;
        }
        for (std::int64_t k = matrix.indptr[i]; k < matrix.indptr[i + 1]; ++k) {
            const S value = matrix.values[k];
            if (value == S(0)) continue;
            if (!(value == S(1))) return std::nullopt;
            const auto f = static_cast<std::size_t>(matrix.indices[k]);
            words[f / kWordBits] |= std::uint64_t{1} << (f % kWordBits);
        }
    }
    return bits;
}

bool counts_common(const KernelFunction& function) {
    return function.kind != KernelKind::rbf && function.kind != KernelKind::laplacian;
}

template <class T>
std::vector<T> count_table(const KernelFunction& function, std::size_t n_features) {
    std::vector<T> table(n_features + 1);
    for (std::size_t count = 0; count <= n_features; ++count)
        table[count] = static_cast<T>(value_at(function, static_cast<double>(count)));
    return table;
}

template std::optional<BitMatrix> BitMatrix::pack(const Matrix<std::uint8_t>&);
template std::optional<BitMatrix> BitMatrix::pack(const Matrix<float>&);
template std::optional<BitMatrix> BitMatrix::pack(const Matrix<double>&);
template std::vector<float> count_table(const KernelFunction&, std::size_t);
template std::vector<double> count_table(const KernelFunction&, std::size_t);

}  // namespace dualfield
