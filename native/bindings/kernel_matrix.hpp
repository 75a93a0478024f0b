// A kernel matrix as Python holds it, shared by what makes one and by the solvers on it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <variant>

#include "dualfield/gram.hpp"

namespace dualfield::bindings {

namespace nb = nanobind;

struct KernelMatrix {
    std::variant<std::shared_ptr<Gram<float>>, std::shared_ptr<Gram<double>>> gram;
    std::shared_ptr<void> held;  // points, or the caller's array
    nb::object owner;
};

}  // namespace dualfield::bindings
