// Sums and maxima over the places where two parts of a span meet, see SplitPair.
#pragma once

#include <span>

#include "dualfield/structures/parse_trees/split_task.hpp"
#include "vector.hpp"

namespace dualfield {
namespace {

void split_sums(std::span<SplitPair> pairs) {
    for (SplitPair& pair : pairs) {
        Vec total[1] = {splat(0.0)};
        for (std::size_t k = pair.first; k < pair.last; k += kLanes)
            total[0] += load(pair.left + k) * load(pair.right + k);
        reduce<Add, 1>(total, &pair.value);
    }
}

void split_maxima(std::span<SplitPair> pairs) {
    for (SplitPair& pair : pairs) {
        Vec top[1] = {splat(-kInfinity)};
        for (std::size_t k = pair.first; k < pair.last; k += kLanes)
            top[0] = larger(load(pair.left + k) + load(pair.right + k), top[0]);
        reduce<Larger, 1>(top, &pair.value);
    }
}

void split_down(std::span<const SplitPair> pairs, const double* factors) {
    for (const SplitPair& pair : pairs) {
        const Vec weight = splat(pair.weight);
        for (std::size_t k = pair.first; k < pair.last; k += kLanes) {
            const Vec factor = weight * load(factors + k);
            store(pair.left_sums + k, load(pair.left_sums + k) + factor * load(pair.right + k));
            store(pair.right_sums + k, load(pair.right_sums + k) + factor * load(pair.left + k));
        }
    }
}

}  // namespace
}  // namespace dualfield
