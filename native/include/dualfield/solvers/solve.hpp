// What every solver reports, and the callbacks that it is given.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "dualfield/solvers/solver_state.hpp"

namespace dualfield {

// Where a solver stands. A pass is the work of looking at all of the data once.
struct Progress {
    double objective, dual, gap, passes, seconds;
};

enum class Outcome { converged, iteration_limit, interrupted, stalled, too_slow, stopped };

// Called with the progress so far; false ends the solver at its present iterate.
using Report = std::function<bool(const Progress&)>;

// The end of a pass. What a callback asks for is computed on demand, and the solver goes on as if it had not been.
struct Moment {
    std::function<Progress()> progress;
    std::function<std::vector<double>()> parameters;
    std::function<SolverState()> state;
};
// What a solver calls while it works.
struct Callbacks {
    Report report;
    // Called at the end of every pass but the last; an outcome ends the solver with it. May be empty.
    std::function<std::optional<Outcome>(const Moment&)> pass_end = {};
    const SolverState* resume = nullptr;  // begin with this state; null: at the start
};

// Seconds since it was made, and those before it.
class Clock {
  public:
    explicit Clock(double before = 0.0) : before_(before) {}
    double seconds() const {
        return before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    double before_;
};

}  // namespace dualfield
