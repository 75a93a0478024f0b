// A kernel matrix as Python holds it, shared by what makes one and by the solvers on it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <variant>

#include "dualfield/kernels/gram.hpp"

namespace dualfield::bindings {

namespace nb = nanobind;

// Calls of a kernel function in Python. While a solver looks after them, an interrupt does not end the call that it
// falls into: the solver stops at its next report, with the point that it has reached.
struct KernelCalls {
    bool is_watched = false, is_interrupted = false;
};

struct KernelMatrix {
    std::variant<std::shared_ptr<Gram<float>>, std::shared_ptr<Gram<double>>> gram;
    std::shared_ptr<void> held;  // points, or the caller's array
    nb::object owner;
    std::shared_ptr<KernelCalls> calls = nullptr;  // of a kernel that is a function in Python
};

}  // namespace dualfield::bindings
