// Sums and maxima over projective dependency trees by Eisner's algorithm (1996). Positions are 0 for the root and 1 to
// n for the words. With i < j, and the arc from a head to a child a factor or a summand,
//
//   both[i][j]  = sum_k right[i][k] left[k + 1][j]                     i and j are heads of all between them,
//   to_j[i][j]  = both[i][j] arc(i to j),      to_i[i][j] = both[i][j] arc(j to i),
//   right[i][j] = sum_k to_k[i][k] right[k][j]                         i is the head of all up to j; k its last child,
//   left[i][j]  = sum_k left[i][k] to_k[k][j]                          j is the head of all from i on; k its first
//   child.
//
// Charts whose entries are combined over k are kept by their begin or by their end, so that both sides of a combination
// are contiguous: about n^3 / 2 steps up, and as many with two products each back down.
#pragma once

#include <cstddef>

#include "dualfield/core/layout.hpp"

namespace dualfield {

struct ArcTask {
    enum Chart : std::size_t {
        kRight,         // right[i][j] at [i][j]
        kRightByEnd,    // right[i][j] at [j][i], but nothing at [j][j]
        kLeft,          // left[i][j] at [i][j]
        kLeftByEnd,     // left[i][j] at [j][i]
        kToEnd,         // to_j[i][j] at [i][j]
        kToBeginByEnd,  // to_i[i][j] at [j][i]
        kBoth,          // both[i][j] at [i][j]
        kUpCharts
    };
    static constexpr std::size_t kDownCharts = 6;  // of what is outside of an entry: all of the above but the last

    std::size_t n_words = 0;
    bool is_single = true;         // the root has one child
    const double* arcs = nullptr;  // [n + 1][stride]: rows are children, columns their heads
    double* up[kUpCharts] = {};
    double* down[kDownCharts] = {};
    double* answer = nullptr;  // [n + 1][stride]: what the pass down finds for each arc
    double total = 0.0;        // what the pass up finds

    // Rows are read by whole vectors from any column on, and one column further.
    static std::size_t stride(std::size_t n_words) { return padded(n_words + 1 + kLanes); }
    static std::size_t chart_size(std::size_t n_words) { return (n_words + 1) * stride(n_words); }
};

}  // namespace dualfield
