// Long rows of numbers in the state of a dual, kept in single or double precision: mixtures and differences.
//
// Arithmetic is in double precision. What goes into the state is rounded first, so that everything computed from it
// belongs to the numbers that are kept.
#pragma once

#include <cstddef>
#include <type_traits>

#include "moves.hpp"
#include "vector.hpp"

namespace dualfield {
namespace {

using HalfVec = float __attribute__((vector_size(16)));

DF_INLINE Vec load_state(const double* p) {
    return load(p);
}
DF_INLINE Vec load_state(const float* p) {
    HalfVec v;
    std::memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, Vec);
}
DF_INLINE void store_state(double* p, Vec v) {
    store(p, v);
}
DF_INLINE void store_state(float* p, Vec v) {
    const HalfVec narrow = __builtin_convertvector(v, HalfVec);
    std::memcpy(p, &narrow, sizeof narrow);
}
template <class S>
DF_INLINE Vec rounded(Vec v) {
    if constexpr (std::is_same_v<S, float>) v = __builtin_convertvector(__builtin_convertvector(v, HalfVec), Vec);
    return v;
}

// out = (1 - share) * old + share * factor * fresh, rounded.
template <class S>
void mix(const S* old, const double* fresh, double share, double factor, std::size_t n, double* out) {
    const double keep_share = 1.0 - share, take = share * factor;
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        store(out + i, rounded<S>(splat(keep_share) * load_state(old + i) + splat(take) * load(fresh + i)));
    for (; i < n; ++i)
        out[i] = static_cast<double>(static_cast<S>(keep_share * static_cast<double>(old[i]) + take * fresh[i]));
}

// fresh is rounded, out = fresh - old; returns <scores, fresh> from before it was rounded.
template <class S>
double difference(double* fresh, const S* old, const double* scores, std::size_t n, double* out) {
    Vec total[1] = {};
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        const Vec value = load(fresh + i), kept = rounded<S>(value);
        total[0] += load(scores + i) * value;
        store(fresh + i, kept);
        store(out + i, kept - load_state(old + i));
    }
    double sum;
    reduce<Add, 1>(total, &sum);
    for (; i < n; ++i) {
        sum += scores[i] * fresh[i];
        fresh[i] = static_cast<double>(static_cast<S>(fresh[i]));
        out[i] = fresh[i] - static_cast<double>(old[i]);
    }
    return sum;
}

template <class S>
void keep(const double* numbers, std::size_t n, S* state) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store_state(state + i, load(numbers + i));
    for (; i < n; ++i) state[i] = static_cast<S>(numbers[i]);
}

// weights move by scale * d where mask is 1; returns how much their penalty grows.
double add_masked(const double* d, const double* mask, double scale, std::size_t n, double* weights,
                  const Shrinkage* shrinkage) {
    return with_moves(shrinkage, [&](const auto& move) {
        Vec total[1] = {};
        std::size_t i = 0;
        for (; i + kLanes <= n; i += kLanes) total[0] += move(weights + i, splat(scale) * load(d + i) * load(mask + i));
        double sum;
        reduce<Add, 1>(total, &sum);
        for (; i < n; ++i) sum += move(weights + i, scale * d[i] * mask[i]);
        return sum;
    });
}

}  // namespace
}  // namespace dualfield
