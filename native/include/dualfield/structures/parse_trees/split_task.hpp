// Two parts of a span that meet at any of its places: sums and maxima over where, as vector code computes them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dualfield {

// Rows of numbers, one for each place where parts may meet; those from `first` to `last` count, which are multiples of
// the vector length.
struct SplitPair {
    const double *left, *right;
    double *left_sums, *right_sums;  // for sums from above only
    std::uint32_t first, last;
    double weight;  // for sums from above only
    double value;   // the answer
};

}  // namespace dualfield
