// Products of sizes. One that wraps around would make an array smaller than what is written to it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <limits>

namespace dualfield {

// The largest product of sizes, with room for a few rows of padding behind it.
inline constexpr std::size_t kLargestProduct = std::numeric_limits<std::size_t>::max() / 4;

// The product, or kLargestProduct + 1 where it is larger: more than any budget of memory.
template <class... Factors>
constexpr std::size_t saturated_product(Factors... factors) {
    const std::size_t each[] = {static_cast<std::size_t>(factors)...};
    for (const std::size_t factor : each)
        if (factor == 0) return 0;
    std::size_t result = 1;
    for (const std::size_t factor : each) {
        if (result > kLargestProduct / factor) return kLargestProduct + 1;
        result *= factor;
    }
    return result;
}

// Says which sizes were asked for.
[[noreturn]] void refuse_product(std::initializer_list<std::size_t> factors);

// The product, for sizes of arrays: every size that is made of two which do not depend on each other goes through here.
// A constant times the size of an array that is already there needs no check.
template <class... Factors>
constexpr std::size_t checked_product(Factors... factors) {
    const std::size_t result = saturated_product(factors...);
    if (result > kLargestProduct) refuse_product({static_cast<std::size_t>(factors)...});
    return result;
}

}  // namespace dualfield
