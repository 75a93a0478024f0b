// Two parts of a span that meet at any of its places: sums and maxima over where, and what rules make of the sums, as
// vector code computes them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dualfield {

// Rows of numbers, one for each place where parts may meet; those from `first` to `last` count, which are multiples of
// the vector length.
struct SplitPair {
    double *left, *right;
    std::uint32_t first, last;
    double value;  // the answer; for sums from above the weight
};

// A pair of children that makes up a span, and its sum over the places where they meet. There are many: places are
// counted in vectors, and no memory would hold the chart of a sentence with more of them.
struct UsedPair {
    std::int32_t pair;
    std::uint16_t first, last;
    double sum;
};

// Pairs whose rules have the same parents, one after another: rule pair_first[p] + a makes the a-th of n parents of the
// pair p. Behind the last weight are kLanes zeros.
struct RunTask {
    const std::int32_t *pair_first, *rule;  // rule: where it is counted
    const double* weights;
    std::size_t n;
    double* from_above;  // [pairs]: the answer, for sums from above only
};

}  // namespace dualfield
