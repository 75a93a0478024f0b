// Headers that the vector code uses, to be included before an instruction set is chosen.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "dualfield/structures/chains/chain_slope.hpp"
#include "dualfield/structures/graphs/junction.hpp"
#include "dualfield/structures/graphs/tree_task.hpp"
#include "dualfield/structures/parse_trees/arc_task.hpp"
#include "dualfield/structures/parse_trees/split_task.hpp"
#include "dualfield/vector/routines.hpp"

// Sanitizers watch the baseline code: it is the same source.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && !defined(DUALFIELD_BASELINE_ONLY)
#define DUALFIELD_X86

namespace dualfield {

// By features, not by level: older compilers know no levels here. No processor has these and lacks the rest of its
// level.
inline bool supports_v3() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
}

inline bool supports_v4() {
    return supports_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

}  // namespace dualfield
#endif
