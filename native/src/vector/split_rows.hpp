// Sums and maxima over the places where two parts of a span meet, and what rules make of the sums, see split_task.hpp.
#pragma once

#include <algorithm>
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

// Pairs with one left part follow each other: what comes to that is kept in a register.
void split_down(std::span<const SplitPair> pairs, const double* factors, std::size_t width) {
    for (std::size_t at = 0, end; at < pairs.size(); at = end) {
        const SplitPair& one = pairs[at];
        std::uint32_t first = one.first, last = one.last;
        for (end = at + 1; end < pairs.size() && pairs[end].left == one.left; ++end) {
            first = std::min(first, pairs[end].first);
            last = std::max(last, pairs[end].last);
        }
        for (std::size_t k = first; k < last; k += kLanes) {
            const Vec factor = load(factors + k), left = factor * load(one.left + k);
            Vec sum = splat(0.0);
            for (const SplitPair& pair : pairs.subspan(at, end - at)) {
                if (k < pair.first || k >= pair.last) continue;
                const Vec weight = splat(pair.value);
                sum += weight * load(pair.right + k);
                double* sums = pair.right + width + k;
                store(sums, load(sums) + weight * left);
            }
            double* sums = one.left + width + k;
            store(sums, load(sums) + factor * sum);
        }
    }
}

// V vectors of parents, the last of which may have fewer than kLanes of them.
template <int V>
DF_CASE void run_columns_up(const RunTask& task, std::span<const UsedPair> pairs, std::size_t begin, double* sums) {
    Vec total[V];
    for (Vec& one : total) one = splat(0.0);
    for (const UsedPair& pair : pairs) {
        const double* weights = task.weights + task.pair_first[pair.pair] + begin;
        const Vec sum = splat(pair.sum);
        for (int v = 0; v < V; ++v) total[v] += sum * load(weights + v * kLanes);
    }
    double found[V * kLanes];
    for (int v = 0; v < V; ++v) store(found + v * kLanes, total[v]);
    for (std::size_t a = begin; a < task.n && a < begin + V * kLanes; ++a) sums[a] += found[a - begin];
}

template <int V>
DF_CASE void run_columns_down(const RunTask& task, std::span<const UsedPair> pairs, std::size_t begin,
                              const double* above, double* counts) {
    const std::size_t n = std::min(task.n - begin, V * kLanes), n_whole = n / kLanes;
    double padded_above[V * kLanes] = {};
    std::copy_n(above + begin, n, padded_above);
    Vec from[V];
    for (int v = 0; v < V; ++v) from[v] = load(padded_above + v * kLanes);
    double* from_above = task.from_above;
    for (const UsedPair& pair : pairs) {
        const auto first = static_cast<std::size_t>(task.pair_first[pair.pair]);
        const double* weights = task.weights + first + begin;
        Vec share[V], total[1] = {splat(0.0)};
        for (int v = 0; v < V; ++v) total[0] += share[v] = from[v] * load(weights + v * kLanes);
        double weight;
        reduce<Add, 1>(total, &weight);
        *from_above++ += weight;
        if (!counts) continue;
        double* counted = counts + task.rule[first] + begin;
        const Vec sum = splat(pair.sum);
        for (std::size_t v = 0; v < V; ++v)
            if (v < n_whole) store(counted + v * kLanes, load(counted + v * kLanes) + sum * share[v]);
        for (std::size_t l = 0; l < n % kLanes; ++l) counted[n_whole * kLanes + l] += pair.sum * share[V - 1][l];
    }
}

// Calls use.operator()<V>(first parent) for all parents, with as few vectors as they need.
template <class Use>
DF_INLINE void for_run_columns(std::size_t n, Use use) {
    std::size_t begin = 0;
    for (; n - begin > 3 * kLanes; begin += std::min(n - begin, 4 * kLanes)) use.template operator()<4>(begin);
    if (n - begin > 2 * kLanes) return use.template operator()<3>(begin);
    if (n - begin > kLanes) return use.template operator()<2>(begin);
    if (n > begin) return use.template operator()<1>(begin);
}

void run_up(const RunTask& task, std::span<const UsedPair> pairs, double* sums) {
    for_run_columns(task.n, [&]<int V>(std::size_t begin) { run_columns_up<V>(task, pairs, begin, sums); });
}

void run_down(const RunTask& task, std::span<const UsedPair> pairs, const double* above, double* counts) {
    std::fill_n(task.from_above, pairs.size(), 0.0);
    for_run_columns(task.n, [&]<int V>(std::size_t begin) { run_columns_down<V>(task, pairs, begin, above, counts); });
}

}  // namespace
}  // namespace dualfield
