// A solver of linear models at work for Python.
#pragma once

#include <string>
#include <utility>

#include "dualfield/solvers/dual/block_dual.hpp"
#include "pass_end.hpp"

namespace dualfield::bindings {

// Runs a solver without the interpreter lock; returns parameters, objective, gap, outcome, iterations, trace.
// `caller`, an object of dualfield.solvers.callbacks or none, is called with the progress now and then. Its `pass_end`,
// if there is one, is called at the end of passes with a BoundMoment, and a true value that it returns ends the solve;
// `resume`, if there is one, is the state to begin with.
template <class Solve>
nb::object run_solver(nb::object caller, const Solve& solve) {
    const nb::object pass_end = nb::getattr(caller, "pass_end", nb::none());
    const nb::object resume = nb::getattr(caller, "resume", nb::none());
    Watch watch(std::move(caller));
    SolverState state;
    if (!resume.is_none()) state = read_state(nb::cast<nb::dict>(resume), &watch);
    LinearSolution solution;
    {
        const nb::gil_scoped_release unlocked;
        Callbacks callbacks{[&](const Progress& now) { return watch(now); }, {}, resume.is_none() ? nullptr : &state};
        if (!pass_end.is_none())
            callbacks.pass_end = [&](const Moment& moment) { return tell_pass_end(pass_end, moment, watch); };
        solution = solve(callbacks);
    }
    return nb::make_tuple(copied(solution.parameters), solution.objective, solution.gap,
                          std::string(name_of(solution.outcome)), solution.n_iterations, watch.release());
}

}  // namespace dualfield::bindings
