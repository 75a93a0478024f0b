// Four doubles at a time. 32-byte vectors on every machine: the compiler splits them where the hardware is narrower,
// and wider ones were measured to be slower for rows of a few dozen labels (docs/decisions/0002-vector-code.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dualfield/core/layout.hpp"

#define DF_INLINE inline __attribute__((always_inline))
#define DF_INLINE_LAMBDA __attribute__((always_inline))
// For one case of many that are told apart once for each call: one function of all of them would take the compiler
// longer than the cases one by one.
#define DF_CASE __attribute__((noinline))
// Before a loop: what it writes is not what it reads in another turn.
#if defined(__clang__)
#define DF_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define DF_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace dualfield {
namespace {

using Vec = double __attribute__((vector_size(32)));
using IntVec = std::int64_t __attribute__((vector_size(32)));

DF_INLINE Vec splat(double x) {
    return Vec{x, x, x, x};
}

DF_INLINE Vec load(const double* p) {
    Vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

DF_INLINE void store(double* p, Vec v) {
    std::memcpy(p, &v, sizeof v);
}

DF_INLINE IntVec bits_of(Vec v) {
    IntVec bits;
    std::memcpy(&bits, &v, sizeof bits);
    return bits;
}

DF_INLINE Vec from_bits(IntVec bits) {
    Vec v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
}

// Comparisons give all bits of a lane or none. Lane by lane: is a < b, is a <= b, and a where the mask is set, b
// elsewhere; the larger and the smaller value, or b where one side is not a number.
#ifdef DUALFIELD_WIDE_REGISTERS
template <class V>
DF_INLINE auto less(V a, V b) {
    return a < b;
}
template <class V>
DF_INLINE auto at_most(V a, V b) {
    return a <= b;
}
template <class Mask, class V>
DF_INLINE V select(Mask mask, V a, V b) {
    return mask ? a : b;
}
template <class V>
DF_INLINE V larger(V a, V b) {
    return a > b ? a : b;
}
template <class V>
DF_INLINE V smaller(V a, V b) {
    return a < b ? a : b;
}
#else
// Where registers have 16 bytes GCC does arithmetic by halves, but takes comparisons apart into a branch for each lane.
template <class V, class Use>
DF_INLINE auto by_halves(V a, V b, Use use) {
    if constexpr (sizeof(a[0]) == 8) {
        return __builtin_shufflevector(use(__builtin_shufflevector(a, a, 0, 1), __builtin_shufflevector(b, b, 0, 1)),
                                       use(__builtin_shufflevector(a, a, 2, 3), __builtin_shufflevector(b, b, 2, 3)), 0,
                                       1, 2, 3);
    } else {
        return __builtin_shufflevector(
            use(__builtin_shufflevector(a, a, 0, 1, 2, 3), __builtin_shufflevector(b, b, 0, 1, 2, 3)),
            use(__builtin_shufflevector(a, a, 4, 5, 6, 7), __builtin_shufflevector(b, b, 4, 5, 6, 7)), 0, 1, 2, 3, 4, 5,
            6, 7);
    }
}
template <class V>
DF_INLINE auto less(V a, V b) {
    return by_halves(a, b, [](auto x, auto y) DF_INLINE_LAMBDA { return x < y; });
}
template <class V>
DF_INLINE auto at_most(V a, V b) {
    return by_halves(a, b, [](auto x, auto y) DF_INLINE_LAMBDA { return x <= y; });
}
template <class Mask, class V>
DF_INLINE V select(Mask mask, V a, V b) {
    Mask left, right;
    std::memcpy(&left, &a, sizeof left);
    std::memcpy(&right, &b, sizeof right);
    const Mask bits = (mask & left) | (~mask & right);
    std::memcpy(&a, &bits, sizeof a);
    return a;
}
template <class V>
DF_INLINE V larger(V a, V b) {
    return by_halves(a, b, [](auto x, auto y) DF_INLINE_LAMBDA { return x > y ? x : y; });
}
template <class V>
DF_INLINE V smaller(V a, V b) {
    return by_halves(a, b, [](auto x, auto y) DF_INLINE_LAMBDA { return x < y ? x : y; });
}
#endif

struct Add {
    static DF_INLINE Vec of(Vec a, Vec b) { return a + b; }
    static DF_INLINE double of(double a, double b) { return a + b; }
};

struct Larger {
    static DF_INLINE Vec of(Vec a, Vec b) { return larger(a, b); }
    static DF_INLINE double of(double a, double b) { return a > b ? a : b; }
};

// out[l] = the four values of v[l] combined. Four rows at once are transposed on the way: as many steps as for one.
template <class Op, int L>
DF_INLINE void reduce(const Vec (&v)[L], double* out) {
    if constexpr (L == 4) {
        const Vec ab =
            Op::of(__builtin_shufflevector(v[0], v[1], 0, 4, 2, 6), __builtin_shufflevector(v[0], v[1], 1, 5, 3, 7));
        const Vec cd =
            Op::of(__builtin_shufflevector(v[2], v[3], 0, 4, 2, 6), __builtin_shufflevector(v[2], v[3], 1, 5, 3, 7));
        store(out, Op::of(__builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7)));
    } else {
        for (int l = 0; l < L; ++l) out[l] = Op::of(Op::of(v[l][0], v[l][1]), Op::of(v[l][2], v[l][3]));
    }
}

DF_INLINE bool any_set(IntVec mask) {
    return ((mask[0] | mask[1]) | (mask[2] | mask[3])) != 0;
}

// exp(x) to within three units in the last place for x <= 709; exactly 0 below -708 (a denormal result is flushed) and
// for -inf.
DF_INLINE Vec exponential(Vec x) {
    constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves the nearest integer in the low bits
    const Vec clamped = larger(x, splat(-708.0));
    const Vec shifted = clamped * splat(1.4426950408889634) + splat(kRound);
    const Vec n = shifted - splat(kRound);
    // ln 2 in two parts, the first with trailing zeros, so that n * ln 2 is exact to twice the precision.
    const Vec r = (clamped - n * splat(6.93147180369123816490e-01)) - n * splat(1.90821492927058770002e-10);
    // Taylor's polynomial of degree 12 on |r| < 0.35 as 1 + (r + r^2 q): the small terms are added up before the large
    // ones, and q is taken by pairs and pairs of pairs, so that few steps wait for each other.
    const Vec r2 = r * r, r4 = r2 * r2;
    const Vec q01 = splat(1.0 / 2) + splat(1.0 / 6) * r, q23 = splat(1.0 / 24) + splat(1.0 / 120) * r;
    const Vec q45 = splat(1.0 / 720) + splat(1.0 / 5040) * r, q67 = splat(1.0 / 40320) + splat(1.0 / 362880) * r;
    const Vec q89 = splat(1.0 / 3628800) + splat(1.0 / 39916800) * r;
    const Vec high = (q45 + q67 * r2) + (q89 + splat(1.0 / 479001600) * r2) * r4;
    const Vec q = (q01 + q23 * r2) + high * r4;
    const Vec p = splat(1.0) + (r + r2 * q);
    // Multiply by 2^n in the exponent bits.
    const Vec y = from_bits(bits_of(p) + (bits_of(shifted) << 52));
    return select(less(x, splat(-708.0)), splat(0.0), y);
}

}  // namespace
}  // namespace dualfield
