// Kernels that are no kernels: what solvers in the dual meet first is a curvature below zero.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "dualfield/kernel_problem.hpp"

namespace dualfield {

// A curvature next to the numbers it was computed from; zero where rounding made it a little less.
template <class T>
double checked_bend(double bend, double scale) {
    constexpr double kRounding = sizeof(T) == 4 ? 1e-5 : 1e-11;
    if (!(bend >= -kRounding * scale))
        throw NotPositive("The kernel is not positive semidefinite: a direction of negative curvature was found.");
    return std::max(bend, 0.0);
}

inline void check_number(double value) {
    if (!std::isfinite(value))
        throw NotPositive("Kernel values overflowed or are not numbers; scale the features or choose another kernel.");
}

// The largest entry of the diagonal of a kernel matrix.
template <class T>
double checked_diagonal(std::span<const T> diagonal) {
    double top = 0.0;
    for (const T value : diagonal) {
        check_number(static_cast<double>(value));
        top = std::max(top, std::abs(static_cast<double>(value)));
    }
    for (const T value : diagonal) checked_bend<T>(static_cast<double>(value), top);
    return top;
}

}  // namespace dualfield
