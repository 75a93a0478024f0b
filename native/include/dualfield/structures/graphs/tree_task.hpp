// Sums over the labellings of trees whose edges have only the scores that edges of a type share: for one tree, or for
// several of one shape side by side (see junction.hpp). With E the exponentials of the table of an edge's type divided
// by the largest, and everything scaled on the way,
//
//   b_t = exp(node_t) * product of the messages of its children,     m_t[a] = sum_k E[a][k] b_t[k],
//
// and back from the roots, where p is the parent of t,
//
//   r_t = belief_p / m_t,     belief_t[k] = b_t[k] sum_a r_t[a] E[a][k],     pairs[a][k] = r_t[a] E[a][k] b_t[k].
#pragma once

#include <cstddef>
#include <cstdint>

#include "dualfield/structures/graphs/junction.hpp"

namespace dualfield {

struct TreeTask {
    std::size_t n_lanes = 1, length = 0, n_labels = 0, n_types = 1;  // lanes: 1 or kSideBySide
    const std::int32_t *order = nullptr, *parents = nullptr;         // [length]: parents come before their children
    const std::int32_t* types = nullptr;                             // [length]; null: all are 0
    const double* nodes[kSideBySide] = {};                           // [length][K]: scores
    double inverse_temperature = 1.0;
    const double *tables = nullptr, *transposed = nullptr;  // [n_types][K][K]: exponentials
    const double* shifts = nullptr;                         // [n_types]: scores that they were divided by
    const SharedExponentials* roots = nullptr;              // of the labels of roots

    double *b = nullptr, *r = nullptr, *belief = nullptr;  // [length][K][n_lanes]
    double* scratch = nullptr;                             // [scratch_size(K)][n_lanes]

    double total[kSideBySide] = {};  // scores, not divided by T
    bool bad_number[kSideBySide] = {}, is_lost[kSideBySide] = {};

    double *node_sums[kSideBySide] = {}, *pair_sums[kSideBySide] = {},
           *root_sums[kSideBySide] = {};  // null: not wanted

    static std::size_t scratch_size(std::size_t n_labels) { return n_labels * (n_labels + 1); }
};

}  // namespace dualfield
