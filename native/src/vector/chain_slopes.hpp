// Changes of the marginals of a chain along a direction, given the probabilities of its steps: see chain_slope.hpp.
#pragma once

#include <cstddef>

#include "dualfield/structures/chains/chain_slope.hpp"
#include "vector.hpp"

namespace dualfield {
namespace {

// Calls body(entry, from, group) for each row of a table of steps: `entry` is where it begins, `from` its state.
template <class Body>
DF_INLINE void for_step_rows(const ChainTopology& topology, Body body) {
    for (const ChainTopology::Group& group : topology.groups())
        for (std::uint32_t i = 0; i < group.n_in; ++i)
            body(group.forward_block + i * group.out_width, topology.in_slots()[group.first_in + i], group);
}

// Of the states of node t: p(state at t | state at t - 1), from what leads there and what follows it.
void step_shares(const ChainTopology& topology, const double* entries, const double* pulled, double* out) {
    for_step_rows(topology, [&](std::size_t entry, std::uint32_t, const ChainTopology::Group& group) DF_INLINE_LAMBDA {
        const double* behind = pulled + group.first_out;
        Vec total[1] = {};
        for (std::size_t j = 0; j < group.out_width; j += kLanes) {
            const Vec mass = load(entries + entry + j) * load(behind + j);
            store(out + entry + j, mass);
            total[0] += mass;
        }
        double sum;
        reduce<Add, 1>(total, &sum);
        const Vec scale = splat(sum > 0.0 ? 1.0 / sum : 0.0);
        for (std::size_t j = 0; j < group.out_width; j += kLanes) store(out + entry + j, load(out + entry + j) * scale);
    });
}

// The probabilities of the states after a step, from those before it.
DF_INLINE void step_states(const ChainTopology& topology, const double* shares, const double* before, double* after) {
    for (std::size_t s = 0; s < topology.width(); s += kLanes) store(after + s, splat(0.0));
    for_step_rows(topology,
                  [&](std::size_t entry, std::uint32_t from, const ChainTopology::Group& group) DF_INLINE_LAMBDA {
                      const Vec mass = splat(before[from]);
                      for (std::size_t j = 0; j < group.out_width; j += kLanes) {
                          double* out = after + group.first_out + j;
                          store(out, load(out) + mass * load(shares + entry + j));
                      }
                  });
}

void walk_states(const ChainTopology& topology, std::size_t length, const double* shares, double* states) {
    const std::size_t width = topology.width();
    for (std::size_t t = 1; t < length; ++t)
        step_states(topology, shares + (t - 1) * topology.forward_size(), states + (t - 1) * width, states + t * width);
}

// row becomes exp(row - highest) * factors, divided by its largest entry; false where all entries are -inf or one is
// no number.
DF_INLINE bool take_exponentials(double* row, const double* factors, std::size_t width) {
    Vec most = splat(-kInfinity);
    for (std::size_t s = 0; s < width; s += kLanes) most = larger(load(row + s), most);
    const double highest = Larger::of(Larger::of(most[0], most[1]), Larger::of(most[2], most[3]));
    if (!(highest > -kInfinity && highest < kInfinity)) return false;
    Vec largest = splat(0.0);
    for (std::size_t s = 0; s < width; s += kLanes) {
        const Vec value = exponential(load(row + s) - splat(highest)) * load(factors + s);
        store(row + s, value);
        largest = larger(value, largest);
    }
    const Vec scale = splat(1.0 / Larger::of(Larger::of(largest[0], largest[1]), Larger::of(largest[2], largest[3])));
    for (std::size_t s = 0; s < width; s += kLanes) store(row + s, load(row + s) * scale);
    return true;
}

// shares = entries * row, each row of them divided by its sum, which goes to `sums`.
template <int R>
DF_INLINE void share_rows(const double* entries, const double* row, std::size_t width, double* shares, double* sums) {
    Vec total[R] = {};
    for (std::size_t s = 0; s < width; s += kLanes)
        for (int r = 0; r < R; ++r) {
            const Vec mass = load(entries + r * width + s) * load(row + s);
            store(shares + r * width + s, mass);
            total[r] += mass;
        }
    reduce<Add, R>(total, sums);
    for (int r = 0; r < R; ++r) {
        const Vec scale = splat(1.0 / sums[r]);
        for (std::size_t s = 0; s < width; s += kLanes)
            store(shares + r * width + s, load(shares + r * width + s) * scale);
    }
}

bool plain_shares(const ChainSharesTask& task) {
    const ChainTopology& topology = *task.topology;
    const std::size_t width = topology.width(), size = topology.forward_size(), n = topology.n_labels();
    double* behind = task.memory;
    for (std::size_t s = 0; s < width; s += kLanes) store(behind + s, splat(1.0));
    for (std::size_t t = task.length; t-- > 0;) {
        double* row = task.rows + t * width;
        if (!take_exponentials(row, behind, width)) return false;
        if (t == 0) break;
        double* out = task.shares + (t - 1) * size;
        std::size_t a = 0;
        for (; a + 4 <= n; a += 4) share_rows<4>(task.table + a * width, row, width, out + a * width, behind + a);
        for (; a < n; ++a) share_rows<1>(task.table + a * width, row, width, out + a * width, behind + a);
    }
    Vec total[1] = {};
    for (std::size_t s = 0; s < width; s += kLanes) total[0] += load(task.rows + s);
    double sum;
    reduce<Add, 1>(total, &sum);
    for (std::size_t s = 0; s < width; s += kLanes) store(task.states + s, load(task.rows + s) / splat(sum));
    walk_states(topology, task.length, task.shares, task.states);
    return true;
}

// What is expected of the direction behind some states of a group.
template <int R>
DF_INLINE void expect_rows(const ChainTopology::Group& group, std::uint32_t first, const double* shares,
                           const double* cliques, const double* whole, const std::uint32_t* slots, double* behind) {
    const std::size_t begin = group.forward_block + first * group.out_width;
    Vec total[R] = {};
    for (std::size_t j = 0; j < group.out_width; j += kLanes) {
        const Vec ahead = load(whole + group.first_out + j);
        for (int r = 0; r < R; ++r) {
            const std::size_t entry = begin + r * group.out_width + j;
            total[r] += load(shares + entry) * (load(cliques + entry) + ahead);
        }
    }
    double found[R];
    reduce<Add, R>(total, found);
    for (int r = 0; r < R; ++r) behind[slots[first + r]] = found[r];
}

// From the last node to the first: what is expected of the direction behind each state, and with its own node.
DF_INLINE void expect_all(const ChainSlopeTask& task) {
    const ChainTopology& topology = *task.topology;
    const std::size_t width = topology.width(), size = topology.forward_size();
    for (std::size_t t = task.length; t-- > 0;) {
        double *behind = task.behind + t * width, *whole = task.whole + t * width;
        for (std::size_t s = 0; s < width; s += kLanes) store(behind + s, splat(0.0));
        if (t + 1 < task.length)
            for (const ChainTopology::Group& group : topology.groups()) {
                const std::uint32_t* slots = topology.in_slots().data() + group.first_in;
                const double *shares = task.shares + t * size, *cliques = task.cliques + t * task.clique_stride;
                std::uint32_t i = 0;
                for (; i + 4 <= group.n_in; i += 4)
                    expect_rows<4>(group, i, shares, cliques, whole + width, slots, behind);
                for (; i < group.n_in; ++i) expect_rows<1>(group, i, shares, cliques, whole + width, slots, behind);
            }
        for (std::size_t s = 0; s < width; s += kLanes)
            store(whole + s, load(task.node + t * width + s) + load(behind + s));
    }
}

// The changes of the steps into node t, and of its states.
DF_INLINE void move_step(const ChainSlopeTask& task, std::size_t t) {
    const ChainTopology& topology = *task.topology;
    const std::size_t width = topology.width(), before = (t - 1) * width;
    const double *shares = task.shares + (t - 1) * topology.forward_size(), *whole = task.whole + t * width;
    const double* cliques = task.cliques + (t - 1) * task.clique_stride;
    double *out = task.change + t * width, *steps = task.steps + (t - 1) * task.step_stride, *rest = task.rest;
    for (std::size_t s = 0; s < width; s += kLanes) store(out + s, splat(0.0));
    for (const ChainTopology::Group& group : topology.groups()) {
        // The same for a whole row: the probability of the state before, and its change less what it expected.
        for (std::uint32_t i = 0; i < group.n_in; ++i) {
            const std::size_t from = before + topology.in_slots()[group.first_in + i];
            rest[2 * i] = task.states[from];
            rest[2 * i + 1] = task.change[from] - task.states[from] * task.behind[from];
        }
        for (std::size_t j = 0; j < group.out_width; j += kLanes) {
            const Vec ahead = load(whole + group.first_out + j);
            Vec total = splat(0.0);
            std::size_t entry = group.forward_block + j;
            for (std::uint32_t i = 0; i < group.n_in; ++i, entry += group.out_width) {
                const Vec above = load(cliques + entry) + ahead;
                const Vec moved = load(shares + entry) * (splat(rest[2 * i]) * above + splat(rest[2 * i + 1]));
                total += moved;
                store(steps + entry, load(steps + entry) + moved);
            }
            store(out + group.first_out + j, total);
        }
    }
}

double chain_slopes(const ChainSlopeTask& task) {
    const std::size_t width = task.topology->width();
    expect_all(task);
    Vec total[1] = {};
    for (std::size_t s = 0; s < width; s += kLanes) total[0] += load(task.states + s) * load(task.whole + s);
    double mean;
    reduce<Add, 1>(total, &mean);
    for (std::size_t s = 0; s < width; s += kLanes)
        store(task.change + s, load(task.states + s) * (load(task.whole + s) - splat(mean)));
    for (std::size_t t = 1; t < task.length; ++t) move_step(task, t);
    return mean;
}

}  // namespace
}  // namespace dualfield
