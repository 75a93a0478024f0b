// What solvers that make epochs share: the order of the examples, the state of a run, and its callbacks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "dualfield/core/random.hpp"
#include "dualfield/solvers/primal/online.hpp"

namespace dualfield {

inline void shuffle(std::vector<std::uint64_t>& order, std::uint64_t seed, std::size_t epoch) {
    RandomStream random(seed, epoch);
    for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.next() % left]);
}

inline std::vector<std::uint64_t> not_empty(const Problem& problem) {
    std::vector<std::uint64_t> order;
    for (std::size_t i = 0; i < problem.n_examples(); ++i)
        if (problem.length(i) > 0) order.push_back(i);
    return order;
}

// The state of a run over epochs, and its callbacks.
struct Epochs {
    const Callbacks& callbacks;
    std::uint64_t epoch = 0;  // those that are complete
    double seconds = 0.0, latest = 0.0;
    Clock clock{0.0};

    // `describe(archive)` lists the state of the solver.
    template <class Describe>
    void begin(const Describe& describe) {
        if (!callbacks.resume) return;
        const StateReader reader(*callbacks.resume);
        reader("epoch", epoch);
        reader("seconds", seconds);
        describe(reader);
        clock = Clock(seconds);
    }
    bool report(double value, double passes) {
        latest = value;
        return callbacks.report({value, 0.0, kInfinity, passes, clock.seconds()});
    }
    // At the end of an epoch.
    template <class Describe, class Parameters>
    std::optional<Outcome> end(const Describe& describe, const Parameters& parameters, bool converged = false) {
        ++epoch;
        if (!report(latest, static_cast<double>(epoch))) return Outcome::interrupted;
        if (converged) return Outcome::converged;
        if (!callbacks.pass_end) return std::nullopt;
        const auto progress = [&] {
            return Progress{latest, 0.0, kInfinity, static_cast<double>(epoch), clock.seconds()};
        };
        const auto state = [&] {
            StateWriter writer;
            writer("epoch", epoch);
            writer("seconds", clock.seconds());
            describe(writer);
            return writer.release();
        };
        return callbacks.pass_end({progress, parameters, state});
    }
};

}  // namespace dualfield
