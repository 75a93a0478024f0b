// The end of a pass, seen from Python, and the state of a solver as a dict of arrays.
#pragma once

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "dualfield/solvers/solve.hpp"
#include "progress.hpp"

namespace dualfield::bindings {

template <class T>
nb::object copied(const std::vector<T>& values) {
    Output<T> out({values.size()});
    std::copy(values.begin(), values.end(), out.data());
    return nb::cast(out.release());
}

using StateDict = nb::typed<nb::dict, nb::str, nb::object>;

inline StateDict as_dict(const SolverState& state) {
    StateDict arrays;
    for (const auto& [name, values] : state)
        arrays[name.c_str()] = std::visit([](const auto& numbers) { return copied(numbers); }, values);
    return arrays;
}

// What Python sees of the end of a pass; not valid after it.
class BoundMoment {
  public:
    BoundMoment(const Moment& moment, const Watch& watch) : moment_(&moment), watch_(&watch) {}
    void end() { moment_ = nullptr; }

    nb::object progress() const {
        const Progress now = unlocked(moment().progress);
        return nb::make_tuple(now.objective, now.dual, now.gap, now.passes, now.seconds);
    }
    nb::object parameters() const { return copied(unlocked(moment().parameters)); }
    StateDict state() const {
        StateDict arrays = as_dict(unlocked(moment().state));
        arrays["trace"] = nb::cast(watch_->rows());
        return arrays;
    }

  private:
    const Moment& moment() const {
        if (!moment_) throw std::runtime_error("this moment has passed");
        return *moment_;
    }
    template <class Compute>
    static std::invoke_result_t<Compute> unlocked(const Compute& compute) {
        const nb::gil_scoped_release lock;
        return compute();
    }
    const Moment* moment_;
    const Watch* watch_;
};

inline std::optional<Outcome> tell_pass_end(const nb::object& pass_end, const Moment& moment, const Watch& watch) {
    const nb::gil_scoped_acquire lock;
    const nb::object shown = nb::cast(BoundMoment(moment, watch));
    BoundMoment& bound = nb::cast<BoundMoment&>(shown);
    try {
        const bool stop = nb::cast<bool>(pass_end(shown));
        bound.end();
        return stop ? std::optional(Outcome::stopped) : std::nullopt;
    } catch (nb::python_error& error) {
        bound.end();
        if (error.matches(PyExc_KeyboardInterrupt)) return Outcome::interrupted;
        throw;
    }
}

// The arrays of a state from Python, and the trace that led to it, which a watch takes over.
inline SolverState read_state(const nb::dict& arrays, Watch* watch = nullptr) {
    SolverState state;
    const auto take = [&]<class T>(const std::string& name, nb::handle value, T) {
        Input<T, 1> array;
        if (!nb::try_cast(value, array, false)) return false;
        state[name] = std::vector<T>(array.data(), array.data() + array.size());
        return true;
    };
    for (const auto [key, value] : arrays) {
        const auto name = nb::cast<std::string>(key);
        if (name == "trace") {
            Input<double, 2> rows;
            if (!nb::try_cast(value, rows, false) || rows.shape(1) != 5)
                throw StateError("trace must be numbers in 5 columns");
            if (watch) watch->prepend(rows.data(), rows.shape(0));
        } else if (!take(name, value, float{}) && !take(name, value, double{}) && !take(name, value, std::uint64_t{})) {
            throw StateError(name + " is of an unknown type");
        }
    }
    return state;
}

}  // namespace dualfield::bindings
