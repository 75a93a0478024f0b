// Vector code for processors of level x86-64-v3 (AVX2 and fused multiply-add).
#include "routines_x86.hpp"

#ifdef DUALFIELD_X86
// Standard headers and shared declarations come first, compiled for the baseline; only what follows the pragma is for
// level v3.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("arch=x86-64-v3"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#endif

#define DUALFIELD_WIDE_REGISTERS  // 32 bytes
#include "table.hpp"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace dualfield {

extern const Routines routines_v3;
const Routines routines_v3 = make_routines("x86-64-v3", &supports_v3);

}  // namespace dualfield
#endif
