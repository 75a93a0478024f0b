// Softmax over one node with a kernel: the problem, what a solver returns, and what solvers share.
//
//   minimise over w, b   1/2 |w|^2 + sum_i c_i [ log sum_y exp(F_iy + b_y) - F_i,y_i - b_y_i ],   F = K B (T)
//
// K is the kernel matrix, B [n][rows] the coefficients, T an optional kernel between classes. With a pinned class the
// score of class 0 is zero and there is one row less: for two classes this is binary logistic regression.
// Dual:  max  -1/2 <B, K B T> + sum_i c_i H(p_i),  B_i = c_i (D_i - p_i),  and sum_i B_i = 0 if there is a bias.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "dualfield/core/parallel.hpp"
#include "dualfield/kernels/gram.hpp"
#include "dualfield/solvers/solve.hpp"

namespace dualfield {

template <class T>
struct KernelProblem {
    Gram<T>* gram;
    std::size_t n_classes;
    bool pinned, with_bias;
    std::span<const std::int32_t> labels;
    std::span<const T> weights;            // c_i > 0
    const double* label_kernel = nullptr;  // [n_rows][n_rows], or the identity
    Gram<float>* rough = nullptr;          // the same matrix in single precision, for steps that need no more

    // [n][n_rows]: what to add to products with the matrix, for working sets: rounding errors of its values at
    // coefficients close to where they were found. Null: nothing.
    const double* correction = nullptr;

    // What may be wrong about any kernel value, beyond the rounding of its own size: a difference of large numbers.
    double noise = 0.0;

    // A part of a larger problem, for solve_newton: the scores at the start, to which other points contribute,
    // [n_rows][padded n], and what the coefficients must sum to, [n_rows]; zero if null.
    const T* scores = nullptr;
    const double* sums = nullptr;

    std::size_t size() const { return labels.size(); }
    std::size_t n_rows() const { return n_classes - (pinned ? 1 : 0); }
};

struct KernelSolution {
    std::vector<double> coefficients;  // [n][n_rows]
    std::vector<double> bias;          // [n_rows]
    double objective = 0.0, gap = 0.0;
    Outcome outcome = Outcome::iteration_limit;
    std::size_t n_iterations = 0;
    double passes = 0.0;
    std::vector<double> scores;  // [n_rows][n], with bias, of a part
};

// The kernel has a direction of negative curvature.
struct NotPositive : std::runtime_error {
    using std::runtime_error::runtime_error;
};
// It seems to have one, or values that are no numbers, in single precision: which proves nothing.
struct SinglePrecision : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct StopRule {
    double tolerance;    // on gap / dual
    double most_passes;  // over the kernel matrix
    // Also enough: a gap of at most this share of what the dual has gained over a value to begin with.
    double share = 0.0, dual_before = 0.0;
};

// A start: coefficients [n][n_rows], empty for the solver's own choice, and bias.
struct KernelStart {
    std::span<const double> coefficients, bias;
    double square = 0.0;  // <B, K B> of a part, up to a constant
};

// Solves matrix x = right in place, matrix [n][n] symmetric positive semidefinite; tiny pivots are raised. matrix is
// overwritten.
void solve_positive(std::size_t n, double* matrix, double* right);

// Solves H x = right for the curvature H = sum_i c_i (diag p_i - p_i p_i') over all classes, singular along the ones:
// of all solutions, one.
void solve_curvature(std::size_t n, bool singular, std::vector<double> curvature, double* right);

// Greedy working sets with block ascent inside: see working_set.cpp.
struct WorkingSetSettings {
    std::size_t size = 256;
    double keep = 0.5;            // share of the previous set that stays
    std::size_t most_inner = 30;  // passes over the set
    double inner_tolerance = 0.02;
    double set_tolerance = 0.2;  // the gap of a set solved by Newton's method, as a share of its gain
    double set_forcing = 0.25;   // its conjugate gradients reduce the residual by this factor
    double patience = 1e300;     // gives up (too_slow) where it expects to need more passes than this
};
template <class T>
KernelSolution solve_working_set(const KernelProblem<T>& problem, const KernelStart& start, const StopRule& rule,
                                 const WorkingSetSettings& settings, ThreadTeam& team, const Report& report);

// Truncated Newton with conjugate gradients in the space of w: see newton_cg.cpp.
struct NewtonSettings {
    double forcing = 0.5;  // conjugate gradients reduce the residual at least by this factor
};
template <class T>
KernelSolution solve_newton(const KernelProblem<T>& problem, const KernelStart& start, const StopRule& rule,
                            const NewtonSettings& settings, ThreadTeam& team, const Report& report);

// Sequential minimal optimisation as in the papers: see smo_binary.cpp (Keerthi et al.) and smo_multiclass.cpp
// (Memisevic).
struct SmoSettings {
    enum class Partner { first_order, second_order } partner = Partner::first_order;
    double tau = 0.0;         // stop at b_up - b_low <= 2 tau as well, if positive (binary, with bias)
    std::uint64_t seed = 0;   // order of the sweeps (multiclass)
    std::size_t repeats = 1;  // pair updates at a point in a row (multiclass)
};
template <class T>
KernelSolution solve_smo_binary(const KernelProblem<T>& problem, const KernelStart& start, const StopRule& rule,
                                const SmoSettings& settings, ThreadTeam& team, const Report& report);
template <class T>
KernelSolution solve_smo_multiclass(const KernelProblem<T>& problem, const KernelStart& start, const StopRule& rule,
                                    const SmoSettings& settings, ThreadTeam& team, const Report& report);

}  // namespace dualfield
