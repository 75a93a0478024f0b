// Vectors of 32 bytes over either precision, for code that is written once for float and double.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "vector.hpp"

namespace dualfield {
namespace {

template <class T>
struct WideOf;
template <>
struct WideOf<double> {
    using type = Vec;
};
template <>
struct WideOf<float> {
    using type = float __attribute__((vector_size(32)));
};
template <class T>
using Wide = typename WideOf<T>::type;

using IntVec32 = std::int32_t __attribute__((vector_size(32)));

template <class T>
inline constexpr std::size_t kWide = 32 / sizeof(T);

// Written out: compilers know this for a broadcast, and a loop over lanes not always.
DF_INLINE Vec wide(double x) {
    return Vec{x, x, x, x};
}
DF_INLINE Wide<float> wide(float x) {
    return Wide<float>{x, x, x, x, x, x, x, x};
}

DF_INLINE Wide<float> load(const float* p) {
    Wide<float> v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

DF_INLINE void store(float* p, Wide<float> v) {
    std::memcpy(p, &v, sizeof v);
}

template <class V>
DF_INLINE V absolute(V a) {
    return select(less(a, V{}), -a, a);
}

DF_INLINE double sum_of(Vec v) {
    return (v[0] + v[1]) + (v[2] + v[3]);
}

DF_INLINE float sum_of(Wide<float> v) {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

DF_INLINE double largest_of(Vec v) {
    const double a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
    return a > b ? a : b;
}

DF_INLINE float largest_of(Wide<float> v) {
    float top = v[0];
    for (int lane = 1; lane < 8; ++lane) top = v[lane] > top ? v[lane] : top;
    return top;
}

// Twice the precision: the lower and the upper half of v as doubles, added.
DF_INLINE Vec as_doubles(Wide<float> v) {
    using Half = float __attribute__((vector_size(16)));
    const Half low = __builtin_shufflevector(v, v, 0, 1, 2, 3), high = __builtin_shufflevector(v, v, 4, 5, 6, 7);
    return __builtin_convertvector(low, Vec) + __builtin_convertvector(high, Vec);
}
DF_INLINE Vec as_doubles(Vec v) {
    return v;
}

// exp(x) to within two units in the last place for x <= 88; exactly 0 below -87 (a denormal result is flushed).
DF_INLINE Wide<float> exponential(Wide<float> x) {
    constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
    const Wide<float> clamped = smaller(larger(x, wide(-87.0F)), wide(88.0F));
    const Wide<float> shifted = clamped * wide(1.44269504F) + wide(kRound);
    const Wide<float> n = shifted - wide(kRound);
    const Wide<float> r = (clamped - n * wide(0.693145752F)) - n * wide(1.42860677e-06F);
    const Wide<float> r2 = r * r;
    const Wide<float> q01 = wide(0.5F) + wide(1.0F / 6) * r, q23 = wide(1.0F / 24) + wide(1.0F / 120) * r;
    const Wide<float> q = q01 + (q23 + wide(1.0F / 720) * r2) * r2;
    const Wide<float> p = wide(1.0F) + (r + r2 * q);
    IntVec32 bits, power;
    std::memcpy(&bits, &p, sizeof bits);
    std::memcpy(&power, &shifted, sizeof power);
    bits += power << 23;
    Wide<float> y;
    std::memcpy(&y, &bits, sizeof y);
    return select(less(x, wide(-87.0F)), wide(0.0F), y);
}

// exp(x) - 1 - x >= 0, to nearly full relative precision near 0 as well.
template <class T>
DF_INLINE Wide<T> exponential_remainder(Wide<T> x) {
    const auto c = [](double value) { return wide(static_cast<T>(value)); };
    // Taylor's series on |x| < 0.5: to x^8 for float, to x^14 for double.
    Wide<T> series = sizeof(T) == 4 ? c(1.0 / 40320) : c(1.0 / 87178291200.0);
    if constexpr (sizeof(T) == 8) {
        series = series * x + c(1.0 / 6227020800.0);
        series = series * x + c(1.0 / 479001600);
        series = series * x + c(1.0 / 39916800);
        series = series * x + c(1.0 / 3628800);
        series = series * x + c(1.0 / 362880);
        series = series * x + c(1.0 / 40320);
    }
    series = series * x + c(1.0 / 5040);
    series = series * x + c(1.0 / 720);
    series = series * x + c(1.0 / 120);
    series = series * x + c(1.0 / 24);
    series = series * x + c(1.0 / 6);
    series = series * x + c(0.5);
    const auto far = less(c(0.5), absolute(x));
    return select(far, (exponential(x) - c(1.0)) - x, series * x * x);
}

}  // namespace
}  // namespace dualfield
