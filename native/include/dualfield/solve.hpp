// What every solver tells and is told.
#pragma once

#include <chrono>
#include <functional>

namespace dualfield {

// Where a solver stands. A pass is the work of looking at all of the data once.
struct Progress {
    double objective, dual, gap, passes, seconds;
};

enum class Outcome { converged, iteration_limit, interrupted, stalled, too_slow };

// Told of every step; false ends the solver at the point it has.
using Report = std::function<bool(const Progress&)>;

class Clock {
  public:
    explicit Clock(double before) : before_(before) {}
    double seconds() const {
        return before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    double before_;
};

}  // namespace dualfield
