// Headers that the vector code uses, to be included before an instruction set is chosen.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "dualfield/routines.hpp"

// Sanitizers watch the baseline code: it is the same source.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && !defined(DUALFIELD_BASELINE_ONLY)
#define DUALFIELD_X86
#endif
