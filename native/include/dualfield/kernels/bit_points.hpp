// Bit-packed points: features that are all 0 or 1, one bit each. A kernel between two of them depends on a count only:
// of features that differ, or of features that both have. Its values are looked up in a table of n_features + 1
// numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dualfield {

template <class T>
struct Matrix;
struct KernelFunction;

struct BitMatrix {
    std::size_t n = 0, n_features = 0, n_words = 0;
    std::vector<std::uint64_t> words;  // [n][n_words], zero behind the last feature

    const std::uint64_t* row(std::size_t i) const { return words.data() + i * n_words; }

    // Nothing if there is a value other than 0 and 1; the search ends at the first.
    template <class S>
    static std::optional<BitMatrix> pack(const Matrix<S>& matrix);
};

// One row of kernel values: out[j] = table[count of ones in point ^ column j], or in point & column j.
template <class T>
struct BitRow {
    const std::uint64_t *point, *columns;  // [n_words], [n][n_words]
    std::size_t n_words, n;
    bool common;  // features that both have, rather than features that differ
    const T* table;
    T* out;
};

// Whether the kernel looks at features that both points have.
bool counts_common(const KernelFunction& function);

// The kernel's value for each count in [0, n_features].
template <class T>
std::vector<T> count_table(const KernelFunction& function, std::size_t n_features);

}  // namespace dualfield
