// Kernels that are no kernels: what solvers in the dual meet first is a curvature below zero.
//
// A Gram matrix must never be refused. So a curvature is held against what rounding can do to it, and single precision
// refuses nothing: it gives up, and double precision decides.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "dualfield/objectives/kernel_problem.hpp"

namespace dualfield {

template <class T>
[[noreturn]] void refuse_curvature() {
    using Error = std::conditional_t<sizeof(T) == 4, SinglePrecision, NotPositive>;
    throw Error("The kernel is not positive semidefinite: a direction of negative curvature was found.");
}

// A curvature next to the numbers it was computed from; zero where rounding made it a little less.
template <class T>
double checked_bend(double bend, double scale, double noise = 0.0) {
    constexpr double kRounding = sizeof(T) == 4 ? 1e-5 : 1e-11;
    if (!(bend >= -(kRounding * scale + 4.0 * noise))) refuse_curvature<T>();
    return std::max(bend, 0.0);
}

template <class T>
void check_number(double value) {
    using Error = std::conditional_t<sizeof(T) == 4, SinglePrecision, NotPositive>;
    if (!std::isfinite(value))
        throw Error("Kernel values overflowed or are not numbers; scale the features or choose another kernel.");
}

// The largest entry of the diagonal of a kernel matrix.
template <class T>
double checked_diagonal(std::span<const T> diagonal, double noise = 0.0) {
    double top = 0.0;
    for (const T value : diagonal) {
        check_number<T>(static_cast<double>(value));
        top = std::max(top, std::abs(static_cast<double>(value)));
    }
    for (const T value : diagonal) checked_bend<T>(static_cast<double>(value), top, noise);
    return top;
}

// <B, K B> = sum_i B_i F_i. Its terms, and those of F = K B, are rounded, and may be much larger than their sum: what
// is wrong is up to eps sum_ij |B_i K_ij B_j|, a little more for long sums, and |K_ij| <= sqrt(K_ii K_jj). size(i, r)
// is |B_i| of row r. `unsure`: what else the sum may be wrong by, where F is kept as a difference of larger numbers.
template <class T, class Size>
double checked_square(const KernelProblem<T>& problem, double square, const Size& size, double unsure = 0.0) {
    check_number<T>(square);
    if (square >= 0.0) return square;
    const std::span<const T> diagonal = problem.gram->diagonal();
    const auto n = static_cast<double>(problem.size());
    for (std::size_t r = 0; r < problem.n_rows(); ++r) {
        double reach = 0.0, total = 0.0;
        for (std::size_t i = 0; i < problem.size(); ++i) {
            reach += size(i, r) * std::sqrt(std::max(static_cast<double>(diagonal[i]), 0.0));
            total += size(i, r);
        }
        unsure += static_cast<double>(std::numeric_limits<T>::epsilon()) * (8.0 + std::sqrt(n)) * reach * reach +
                  problem.noise * total * total;
    }
    if (square < -unsure) refuse_curvature<T>();
    return 0.0;
}

}  // namespace dualfield
