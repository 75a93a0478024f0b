// One pass over the steps of an elimination, and one back. The table of step s has the scores of everything that
// involves its nodes and those eliminated before it, for all labels of its node v and its separator S:
//
//   table_s[v][S] = factors + messages of its children,      message_s[S] = max over v, or T log sum exp(. / T).
//
// Sums multiply exponentials, of which there are as many as scores, not as cells: factors and messages are divided by
// their largest entry, whose logarithm goes to the total. Where a sum is so small that something may have been lost in
// it, the pass is made again in logarithms.
//
// Examples of the same shape are computed side by side, one in each lane of two vectors: the lane is the innermost axis
// of all tables. Every lane goes through the operations that an example alone goes through, in the same order, so lanes
// do not change a bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dualfield/core/layout.hpp"
#include "dualfield/structures/graphs/elimination.hpp"

namespace dualfield {

inline constexpr std::size_t kSideBySide = 2 * kLanes;  // examples

// A factor that all examples share, exponentiated once: exp((score - highest) / T).
struct SharedExponentials {
    const double* values = nullptr;
    double highest = 0.0;  // score
    double lowest = 0.0;   // logarithm of the smallest value that is not forbidden
    bool bad_number = false, is_huge = false;
};

// The scores of a factor in each lane: own plus shared, [cells] each. Null: zeros, in all lanes. -inf forbids.
struct FactorScores {
    const double *own[kSideBySide] = {}, *shared[kSideBySide] = {};
    const SharedExponentials* ready = nullptr;  // where nothing else is in it, and all lanes share it
};

// Where the marginals of a factor or a node go in each lane; null: not wanted.
struct FactorSums {
    double *own[kSideBySide] = {}, *shared[kSideBySide] = {};  // written, and added to
};

struct JunctionTask {
    const EliminationPlan* plan = nullptr;
    std::size_t n_lanes = 1;                     // 1 or kSideBySide
    const FactorScores* factors = nullptr;       // [n_factors]
    const std::int32_t* const* known = nullptr;  // [n_lanes][n_nodes]: labels that are known, -1 where not; null: none
    double inverse_temperature = 1.0;

    double *tables = nullptr, *messages = nullptr;  // [cells][n_lanes] of all steps
    double *scales = nullptr, *lowest = nullptr;    // [steps][n_lanes]: what messages were divided by; their smallest
    double* factor_lowest = nullptr;                // [n_factors][n_lanes]: logarithm of the smallest entry
    double* exponentials = nullptr;                 // [exponentials_size(plan)][n_lanes]: factors as they were read
    double* scratch = nullptr;                      // [scratch_size(plan)][n_lanes]

    // Answers of a pass up: scores, not divided by T.
    double total[kSideBySide] = {};
    bool bad_number[kSideBySide] = {};  // NaN or +inf
    bool is_huge[kSideBySide] = {};     // a score beyond kHuge: sums may overflow
    bool is_lost[kSideBySide] = {};     // a product was too small
    bool is_normalised = false;         // whether tables are p(v | S), or proportional to it

    // Answers of a pass down; where they go, or null.
    FactorSums *factor_sums = nullptr, *node_sums = nullptr;  // [n_factors], [n_nodes]
    double* entropy = nullptr;                                // for one lane
    const double* first_level = nullptr;                      // of the step that was done last

    static constexpr double kHuge = 1e290;
    static std::size_t exponentials_size(const EliminationPlan& plan) { return plan.factor_begins.back() + 1; }
    static std::size_t scratch_size(const EliminationPlan& plan) {
        return plan.most_partial + std::max(plan.most_below, plan.most_factor);
    }
};

}  // namespace dualfield
