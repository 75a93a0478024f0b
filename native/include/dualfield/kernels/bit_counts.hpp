// The counts behind a kernel matrix of points kept as bits: a quarter or half of the memory of its values, and faster
// to look values up from than to count again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dualfield/kernels/gram.hpp"
#include "dualfield/kernels/kernel.hpp"

namespace dualfield {

class BitCounts {
  public:
    static constexpr std::size_t kMostFeatures = 65535;

    template <class T>
    BitCounts(const KernelFunction& function, const Points<T>& points, std::size_t n_threads, const Poll& between);

    // One for each pair of points, or two where there are more features than a byte can count.
    static std::size_t bytes(std::size_t n, std::size_t n_features) {
        return saturated_product(n, n, n_features > 255 ? 2 : 1);
    }

    // out[j - first] = table[count of points i and j] for j in [first, last).
    template <class T>
    void look_up(const std::vector<T>& table, std::size_t i, std::size_t first, std::size_t last, T* out) const;

    // Rows for a cache; the counts live as long as what is returned.
    template <class T>
    static typename CachedGram<T>::Fill rows(std::shared_ptr<const BitCounts> counts, std::vector<T> table);

  private:
    std::size_t n_;
    Aligned<std::uint8_t> small_;   // [n][n], one of the two
    Aligned<std::uint16_t> large_;  // [n][n]
};

}  // namespace dualfield
