// Changes of the marginals of a chain along a direction, given the probabilities of its steps: see chain_slope.hpp.
#pragma once

#include <cstddef>

#include "dualfield/structures/chain_slope.hpp"
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

double chain_slopes(const ChainSlopeTask& task) {
    const ChainTopology& topology = *task.topology;
    const std::size_t width = topology.width(), size = topology.forward_size(), last = task.length - 1;
    const auto add_node = [&](std::size_t t) DF_INLINE_LAMBDA {
        for (std::size_t s = 0; s < width; s += kLanes)
            store(task.whole + t * width + s, load(task.node + t * width + s) + load(task.behind + t * width + s));
    };
    for (std::size_t s = 0; s < width; s += kLanes) store(task.behind + last * width + s, splat(0.0));
    add_node(last);
    for (std::size_t t = last; t > 0; --t) {
        const double *shares = task.shares + (t - 1) * size, *cliques = task.cliques + (t - 1) * task.clique_stride;
        const double* whole = task.whole + t * width;
        double* behind = task.behind + (t - 1) * width;
        for (std::size_t s = 0; s < width; s += kLanes) store(behind + s, splat(0.0));
        for_step_rows(topology, [&](std::size_t entry, std::uint32_t from,
                                    const ChainTopology::Group& group) DF_INLINE_LAMBDA {
            Vec total[1] = {};
            for (std::size_t j = 0; j < group.out_width; j += kLanes)
                total[0] += load(shares + entry + j) * (load(cliques + entry + j) + load(whole + group.first_out + j));
            reduce<Add, 1>(total, behind + from);
        });
        add_node(t - 1);
    }
    Vec total[1] = {};
    for (std::size_t s = 0; s < width; s += kLanes) total[0] += load(task.states + s) * load(task.whole + s);
    double mean;
    reduce<Add, 1>(total, &mean);
    for (std::size_t s = 0; s < width; s += kLanes)
        store(task.change + s, load(task.states + s) * (load(task.whole + s) - splat(mean)));
    for (std::size_t t = 1; t <= last; ++t) {
        const double *shares = task.shares + (t - 1) * size, *cliques = task.cliques + (t - 1) * task.clique_stride;
        const double *whole = task.whole + t * width, *behind = task.behind + (t - 1) * width;
        const double *states = task.states + (t - 1) * width, *before = task.change + (t - 1) * width;
        double *out = task.change + t * width, *steps = task.steps + (t - 1) * task.step_stride;
        for (std::size_t s = 0; s < width; s += kLanes) store(out + s, splat(0.0));
        for_step_rows(topology,
                      [&](std::size_t entry, std::uint32_t from, const ChainTopology::Group& group) DF_INLINE_LAMBDA {
                          const Vec mass = splat(states[from]);
                          const Vec rest = splat(before[from] - states[from] * behind[from]);
                          for (std::size_t j = 0; j < group.out_width; j += kLanes) {
                              double *node = out + group.first_out + j, *step = steps + entry + j;
                              const Vec above = load(cliques + entry + j) + load(whole + group.first_out + j);
                              const Vec moved = load(shares + entry + j) * (mass * above + rest);
                              store(node, load(node) + moved);
                              store(step, load(step) + moved);
                          }
                      });
    }
    return mean;
}

}  // namespace
}  // namespace dualfield
