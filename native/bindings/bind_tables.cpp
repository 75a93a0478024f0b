// Tables of log-probabilities.
#include <nanobind/stl/pair.h>

#include <utility>

#include "arrays.hpp"
#include "dualfield/regularisers/table_rows.hpp"
#include "register.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

auto project(const Input<double, 1>& target, const Input<std::int64_t, 1>& starts, double floor,
             std::size_t n_threads) {
    require(starts.shape(0) > 0 && starts(0) == 0, "starts must begin with 0");
    const std::size_t n_rows = starts.shape(0) - 1;
    for (std::size_t i = 0; i < n_rows; ++i) require(starts(i) < starts(i + 1), "rows must not be empty");
    require(starts(n_rows) == static_cast<std::int64_t>(target.shape(0)), "starts must end with the size of target");
    Output<double> theta({target.shape(0)}), nu({n_rows});
    {
        const nb::gil_scoped_release unlocked;
        project_rows(target.data(), starts.data(), n_rows, floor, n_threads, theta.data(), nu.data());
    }
    return std::make_pair(theta.release(), nu.release());
}

}  // namespace

void register_tables(nb::module_& module) {
    module.def("project_rows", &project, "target"_a.noconvert(), "starts"_a.noconvert(), "floor"_a, "n_threads"_a,
               "The nearest rows of log-probabilities that sum to at most one, and the multipliers of the sums.");
}

}  // namespace dualfield::bindings
