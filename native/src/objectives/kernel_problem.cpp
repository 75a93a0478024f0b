#include "dualfield/objectives/kernel_problem.hpp"

#include <algorithm>
#include <cmath>

namespace dualfield {

void solve_positive(std::size_t n, double* a, double* x) {
    double top = 0.0;
    for (std::size_t i = 0; i < n; ++i) top = std::max(top, a[i * n + i]);
    const double smallest = std::max(top * 1e-14, 1e-300);
    // Cholesky, row by row.
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            double sum = a[i * n + j];
            for (std::size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? std::sqrt(std::max(sum, smallest)) : sum / a[j * n + j];
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < i; ++k) x[i] -= a[i * n + k] * x[k];
        x[i] /= a[i * n + i];
    }
    for (std::size_t i = n; i-- > 0;) {
        for (std::size_t k = i + 1; k < n; ++k) x[i] -= a[k * n + i] * x[k];
        x[i] /= a[i * n + i];
    }
}

void solve_curvature(std::size_t n, bool singular, std::vector<double> curvature, double* right) {
    if (singular) {
        double trace = 0.0;
        for (std::size_t i = 0; i < n; ++i) trace += curvature[i * n + i];
        const double lift = trace / static_cast<double>(n * n);
        for (double& value : curvature) value += lift;
    }
    solve_positive(n, curvature.data(), right);
}

}  // namespace dualfield
