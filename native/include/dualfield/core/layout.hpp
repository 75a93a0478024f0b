// How rows of numbers lie in memory: padded to whole vectors.
#pragma once

#include <cstddef>
#include <limits>

namespace dualfield {

inline constexpr std::size_t kLanes = 4;  // doubles in a vector
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Smallest multiple of the vector length that holds n values.
constexpr std::size_t padded(std::size_t n) {
    return (n + kLanes - 1) / kLanes * kLanes;
}

}  // namespace dualfield
