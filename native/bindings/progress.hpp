// The progress of a solve, seen from Python: its trace, signals, and callbacks.
#pragma once

#include <chrono>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "dualfield/solvers/solve.hpp"

namespace dualfield::bindings {

inline const char* name_of(Outcome outcome) {
    switch (outcome) {
        case Outcome::converged:
            return "converged";
        case Outcome::interrupted:
            return "interrupted";
        case Outcome::stalled:
            return "stalled";
        case Outcome::too_slow:
            return "too_slow";
        case Outcome::stopped:
            return "stopped";
        default:
            return "iteration_limit";
    }
}

// Keeps the trace of a solve, and hands over to Python now and then, for signals and callbacks. A process that ignores
// SIGINT, as under nohup, has no handler in Python either: nothing is raised, and the solve goes on.
class Watch {
  public:
    // callbacks: an object of dualfield.solvers.callbacks, or none.
    explicit Watch(nb::object callbacks)
        : callbacks_(std::move(callbacks)),
          interval_(callbacks_.is_none() ? kInterval : nb::cast<double>(callbacks_.attr("interval"))) {}

    bool operator()(const Progress& now) {
        latest_ = now;
        seen_ = true;
        if (now.passes - last_passes_ >= 0.2) keep();
        const auto time = std::chrono::steady_clock::now();
        if (time - looked_ < interval_) return true;
        looked_ = time;
        const nb::gil_scoped_acquire lock;
        if (PyErr_CheckSignals() != 0) {
            // Stops where it is; the estimator warns.
            if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) throw nb::python_error();
            PyErr_Clear();
            return false;
        }
        if (callbacks_.is_none()) return true;
        try {
            callbacks_(now.objective, now.dual, now.gap, now.passes, now.seconds);
        } catch (nb::python_error& error) {
            if (!error.matches(PyExc_KeyboardInterrupt)) throw;
            return false;  // it came while Python was at work
        }
        return true;
    }

    // A trace that began earlier: rows as `release` gives them.
    void prepend(const double* rows, std::size_t n_rows) {
        for (std::size_t r = 0; r < n_rows; ++r, rows += 5)
            rows_.push_back({rows[0], rows[1], rows[2], rows[3], rows[4]});
        if (n_rows > 0) last_passes_ = rows_.back().passes;
    }

    // [n][5]: objective, dual, gap, passes, seconds; the last row is where the solver ended.
    nb::ndarray<nb::numpy, double> release() {
        if (seen_ && (rows_.empty() || rows_.back().seconds != latest_.seconds)) keep();
        return rows();
    }
    nb::ndarray<nb::numpy, double> rows() const {
        Output<double> out({rows_.size(), 5});
        double* target = out.data();
        for (const Progress& row : rows_)
            for (const double value : {row.objective, row.dual, row.gap, row.passes, row.seconds}) *target++ = value;
        return out.release();
    }

  private:
    void keep() {
        rows_.push_back(latest_);
        last_passes_ = latest_.passes;
    }
    static constexpr double kInterval = 0.05;  // seconds between two calls
    nb::object callbacks_;
    std::chrono::duration<double> interval_;
    double last_passes_ = -1.0;
    bool seen_ = false;
    Progress latest_{};
    std::vector<Progress> rows_;
    std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
};

}  // namespace dualfield::bindings
