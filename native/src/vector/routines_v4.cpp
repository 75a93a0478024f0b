// Vector code for processors of level x86-64-v4 (AVX-512: more registers, the same 32-byte vectors).
#include "routines_x86.hpp"

#ifdef DUALFIELD_X86
// Standard headers and shared declarations come first, compiled for the baseline; only what follows the pragma is for
// level v4.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("arch=x86-64-v4"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
#endif

#define DUALFIELD_WIDE_REGISTERS  // 32 bytes
#include "table.hpp"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace dualfield {

extern const Routines routines_v4;
const Routines routines_v4 = make_routines("x86-64-v4", &supports_v4);

}  // namespace dualfield
#endif
