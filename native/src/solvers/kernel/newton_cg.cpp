// Truncated Newton for kernel logistic regression.
//
// With the bias eliminated, J(w) = min_b 1/2 |w|^2 + sum_i c_i loss_i(F_i + b), and w = sum_i phi(x_i) B_i' is kept as
// B. Gradient: phi'(B - e) with e = c (D - P), P = softmax(F + b). Because J is strongly convex with constant 1,
//
//     J(w) - J* <= 1/2 |gradient|^2 = 1/2 <B - e, K (B - e)>,
//
// and this is exactly the duality gap between B and the dual point e, which is feasible (b is optimal, so e sums to
// zero). It is a square: nothing cancels, and single precision is enough for tight gaps. Newton's direction solves (I +
// phi' W^ phi) d = -gradient, W^ = W - W E (E'WE)^-1 E'W where E spreads b over all points; conjugate gradients run in
// the inner product of K, so that each step costs one product with K. They may use a copy of K in single precision:
// scores and gradients, and with them the gap, come from the exact one.
#include <algorithm>
#include <cmath>
#include <limits>

#include "curvature_check.hpp"
#include "dualfield/objectives/kernel_problem.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

namespace {

template <class T>
class NewtonCg {
  public:
    NewtonCg(const KernelProblem<T>& problem, const StopRule& rule, const NewtonSettings& settings, ThreadTeam& team,
             const Report& report)
        : problem_(problem),
          rule_(rule),
          settings_(settings),
          team_(team),
          report_(report),
          native_(routines().kernel<T>()),
          n_(problem.size()),
          rows_(problem.n_rows()),
          stride_(padded_to_panels<T>(problem.size())),
          bias_(rows_, 0.0),
          bias_rounded_(rows_, T(0)),
          curvature_(checked_product(rows_, rows_)),
          exact_(!problem.rough || problem.scores) {
        for (Aligned<T>* array : {&coefficients_, &scores_, &p_, &residual_, &k_residual_, &direction_, &k_direction_,
                                  &step_, &k_step_, &image_, &trial_})
            *array = Aligned<T>(checked_product(rows_, stride_), T(0));
        by_point_ = Aligned<T>(checked_product(n_, rows_));
        if (problem.rough) {
            rough_in_ = Aligned<float>(checked_product(n_, rows_));
            rough_out_ = Aligned<float>(checked_product(rows_, stride_), 0.0F);
        }
    }

    KernelSolution solve(const KernelStart& start) {
        if (!start.coefficients.empty()) {
            for (std::size_t i = 0; i < n_; ++i)
                for (std::size_t r = 0; r < rows_; ++r)
                    coefficients_[r * stride_ + i] = static_cast<T>(start.coefficients[i * rows_ + r]);
            std::copy(start.bias.begin(), start.bias.end(), bias_.begin());
        }
        if (problem_.scores)
            std::copy_n(problem_.scores, rows_ * stride_, scores_.begin());
        else if (!start.coefficients.empty())
            rough_product(coefficients_, scores_);
        double loss = fit_bias(scores_);
        double square = problem_.scores ? start.square : inner(coefficients_, scores_);
        KernelSolution solution;
        bool stopped = false;
        for (;; ++solution.n_iterations) {
            const double objective = 0.5 * square + loss;
            // residual = e - B: minus the gradient.
            for (std::size_t i = 0; i < n_; ++i) {
                const T weight = problem_.weights[i];
                for (std::size_t r = 0; r < rows_; ++r)
                    residual_[r * stride_ + i] = -weight * p_[r * stride_ + i] - coefficients_[r * stride_ + i];
                const int row = problem_.labels[i] - (problem_.pinned ? 1 : 0);
                if (row >= 0) residual_[static_cast<std::size_t>(row) * stride_ + i] += weight;
            }
            exact_ ? product(residual_, k_residual_) : rough_product(residual_, k_residual_);
            const double twice_gap = residual_square();
            const double gap = 0.5 * twice_gap, dual = objective - gap;
            if (!exact_ && (gap <= rule_.tolerance * dual || passes_ >= rule_.most_passes)) {
                refine(square, loss);
                continue;
            }
            solution.objective = objective;
            solution.gap = gap;
            const bool go_on = report_({objective, dual, gap, passes_, clock_.seconds()}) && !stopped;
            const double relative = dual > 0.0 ? gap / dual : std::numeric_limits<double>::infinity();
            if (relative <= rule_.tolerance || gap < rule_.share * (dual - rule_.dual_before)) {
                solution.outcome = Outcome::converged;
            } else if (!go_on) {
                solution.outcome = Outcome::interrupted;
            } else if (passes_ >= rule_.most_passes) {
                solution.outcome = Outcome::iteration_limit;
            } else {
                const double forcing =
                    problem_.scores ? settings_.forcing : std::min(settings_.forcing, std::sqrt(relative));
                // Half the squared residual is the gap that the quadratic model expects: no need to go far below the
                // goal.
                const double goal = 0.5 * rule_.tolerance * std::max(dual, 0.0);
                conjugate_gradients(twice_gap,
                                    std::max(forcing * forcing * twice_gap, std::min(goal, 0.25 * twice_gap)));
                if (line_search(square, loss, objective)) continue;
                if (!exact_ && go_on) {
                    refine(square, loss);
                    continue;
                }
                solution.outcome = Outcome::stalled;
            }
            if (!exact_) {  // interrupted: the gap that is reported is the exact one
                refine(square, loss);
                exact_ = true;
                stopped = true;
                continue;
            }
            break;
        }
        solution.coefficients.resize(n_ * rows_);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t r = 0; r < rows_; ++r)
                solution.coefficients[i * rows_ + r] = static_cast<double>(coefficients_[r * stride_ + i]);
        solution.bias = bias_;
        solution.passes = passes_;
        if (problem_.scores) {
            solution.scores.resize(rows_ * n_);
            for (std::size_t r = 0; r < rows_; ++r)
                for (std::size_t i = 0; i < n_; ++i)
                    solution.scores[r * n_ + i] = static_cast<double>(scores_[r * stride_ + i]) + bias_[r];
        }
        return solution;
    }

  private:
    // <residual, K residual>; a negative value that rounding does not explain means that K is not positive.
    double residual_square() const {
        const double square = inner(residual_, k_residual_);
        if (!exact_ && square < 0.0) return 0.0;
        return checked_square(problem_, square, [&](std::size_t i, std::size_t r) {
            return std::abs(static_cast<double>(residual_[r * stride_ + i]));
        });
    }

    // From here on scores and gradients are exact; conjugate gradients still use the rough matrix.
    void refine(double& square, double& loss) {
        exact_ = true;
        product(coefficients_, scores_);
        loss = fit_bias(scores_);
        square = inner(coefficients_, scores_);
    }

    // out = K in T, in single precision where there is a matrix for that.
    void rough_product(const Aligned<T>& in, Aligned<T>& out) {
        if (!problem_.rough) return product(in, out);
        spread_labels(in);
        for (std::size_t at = 0; at < n_ * rows_; ++at) rough_in_[at] = static_cast<float>(by_point_[at]);
        problem_.rough->product(rough_in_.data(), rows_, rough_out_.data(), stride_, team_);
        for (std::size_t at = 0; at < rows_ * stride_; ++at) out[at] = static_cast<T>(rough_out_[at]);
        passes_ += 1.0;
    }

    void product(const Aligned<T>& in, Aligned<T>& out) {
        spread_labels(in);
        problem_.gram->product(by_point_.data(), rows_, out.data(), stride_, team_);
        passes_ += 1.0;
    }

    // by_point = in T, [n][rows].
    void spread_labels(const Aligned<T>& in) {
        const double* label_kernel = problem_.label_kernel;
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t r = 0; r < rows_; ++r) {
                if (!label_kernel) {
                    by_point_[i * rows_ + r] = in[r * stride_ + i];
                    continue;
                }
                double sum = 0.0;
                for (std::size_t s = 0; s < rows_; ++s)
                    sum += static_cast<double>(in[s * stride_ + i]) * label_kernel[s * rows_ + r];
                by_point_[i * rows_ + r] = static_cast<T>(sum);
            }
    }

    double inner(const Aligned<T>& a, const Aligned<T>& b) const {
        double total = 0.0;
        for (std::size_t r = 0; r < rows_; ++r)
            for (std::size_t first = 0; first < n_; first += 256) {
                const T *x = a.data() + r * stride_ + first, *y = b.data() + r * stride_ + first;
                const std::size_t n = std::min<std::size_t>(256, n_ - first);
                T lanes[8] = {};
                std::size_t j = 0;
                for (; j + 8 <= n; j += 8)
                    for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] += x[j + lane] * y[j + lane];
                for (; j < n; ++j) lanes[0] += x[j] * y[j];
                for (const T lane : lanes) total += static_cast<double>(lane);
            }
        return total;
    }

    // P = softmax(scores + b) for the present b; returns the loss (plus <b, sums>), slopes are those along b.
    double probabilities(const Aligned<T>& scores, std::vector<double>* slopes) {
        for (std::size_t r = 0; r < rows_; ++r) bias_rounded_[r] = static_cast<T>(bias_[r]);
        const SoftmaxColumns<T> columns{.n_rows = rows_,
                                        .stride = stride_,
                                        .pinned = problem_.pinned,
                                        .scores = scores.data(),
                                        .bias = bias_rounded_.data(),
                                        .weights = problem_.weights.data(),
                                        .labels = problem_.labels.data(),
                                        .p = p_.data()};
        const std::size_t n_chunks = problem_.gram->n_chunks(), width = slopes ? rows_ : 0;
        std::vector<double> partial(n_chunks * (width + 1), 0.0);
        team_.run(n_chunks, [&](std::size_t, std::size_t chunk) {
            SoftmaxSums sums{.slopes = slopes ? partial.data() + chunk * (width + 1) + 1 : nullptr};
            native_.softmax_columns(columns, chunk * Gram<T>::kChunk, std::min(n_, (chunk + 1) * Gram<T>::kChunk),
                                    sums);
            partial[chunk * (width + 1)] = sums.loss;
        });
        double loss = 0.0;
        if (slopes) slopes->assign(rows_, 0.0);
        for (std::size_t chunk = 0; chunk < n_chunks; ++chunk) {
            loss += partial[chunk * (width + 1)];
            for (std::size_t r = 0; r < width; ++r) (*slopes)[r] += partial[chunk * (width + 1) + 1 + r];
        }
        for (std::size_t r = 0; problem_.sums && r < rows_; ++r) {
            loss += bias_[r] * problem_.sums[r];
            if (slopes) (*slopes)[r] += problem_.sums[r];
        }
        return loss;
    }

    // E'WE = sum_i c_i (diag p_i - p_i p_i').
    void update_curvature() {
        const std::size_t n_chunks = problem_.gram->n_chunks(), size = rows_ * rows_;
        // A few large pieces: each has a table of its own.
        const std::size_t n_pieces = std::min<std::size_t>(8, n_chunks), step = (n_ + n_pieces - 1) / n_pieces;
        std::vector<double> partial(n_pieces * size, 0.0);
        team_.run(n_pieces, [&](std::size_t, std::size_t piece) {
            const std::size_t first = std::min(n_, piece * step), last = std::min(n_, first + step);
            for (std::size_t at = first; at < last; at += 512)
                native_.class_moments(p_.data(), problem_.weights.data(), rows_, stride_, at, std::min(last, at + 512),
                                      partial.data() + piece * size);
        });
        for (std::size_t r = 0; r < rows_; ++r)
            for (std::size_t s = r; s < rows_; ++s) {
                double sum = 0.0;
                for (std::size_t piece = 0; piece < n_pieces; ++piece) sum += partial[piece * size + r * rows_ + s];
                curvature_[r * rows_ + s] = curvature_[s * rows_ + r] = -sum;
            }
        for (std::size_t r = 0; r < rows_; ++r) {
            double mass = 0.0;
            for (std::size_t i = 0; i < n_; ++i)
                mass += static_cast<double>(problem_.weights[i]) * static_cast<double>(p_[r * stride_ + i]);
            curvature_[r * rows_ + r] += mass;
        }
    }

    // The best b for given scores, by Newton's method with halving; leaves P there and returns the loss.
    double fit_bias(const Aligned<T>& scores) {
        if (!problem_.with_bias) return probabilities(scores, nullptr);
        std::vector<double> slopes, step;
        double loss = probabilities(scores, &slopes), mass = 0.0;
        for (const T weight : problem_.weights) mass += static_cast<double>(weight);
        const double enough = mass * (sizeof(T) == 4 ? 2e-7 : 1e-14);
        for (int round = 0; round < 50; ++round) {
            double worst = 0.0;
            for (const double slope : slopes) worst = std::max(worst, std::abs(slope));
            if (worst <= enough) break;
            update_curvature();
            step = slopes;
            solve_curvature(rows_, !problem_.pinned, curvature_, step.data());
            double longest = 0.0;
            for (const double value : step) longest = std::max(longest, std::abs(value));
            double t = longest > 4.0 ? 4.0 / longest : 1.0;
            const std::vector<double> old = bias_;
            double next = 0.0;
            for (int half = 0; half < 30; ++half, t *= 0.5) {
                for (std::size_t r = 0; r < rows_; ++r) bias_[r] = old[r] - t * step[r];
                next = probabilities(scores, &slopes);
                if (next <= loss + 1e-12 * std::abs(loss)) break;
            }
            const bool gained = next < loss - 1e-15 * std::abs(loss);
            loss = next;
            if (!gained && round > 3) break;
        }
        return loss;
    }

    // step = approximate solution of (I + W^ K) step = residual in the inner product of K; k_step = K step.
    void conjugate_gradients(double square, double target) {
        if (problem_.with_bias) update_curvature();
        std::fill(step_.begin(), step_.end(), T(0));
        std::fill(k_step_.begin(), k_step_.end(), T(0));
        std::copy(residual_.begin(), residual_.end(), direction_.begin());
        std::copy(k_residual_.begin(), k_residual_.end(), k_direction_.begin());
        for (int iteration = 0; iteration < 500; ++iteration) {
            const double bent = apply_curvature();
            if (!(bent > 0.0)) break;
            const T alpha = static_cast<T>(square / bent);
            for (std::size_t at = 0; at < rows_ * stride_; ++at) {
                step_[at] += alpha * direction_[at];
                k_step_[at] += alpha * k_direction_[at];
                residual_[at] -= alpha * image_[at];
            }
            if (passes_ >= rule_.most_passes) break;
            rough_product(residual_, k_residual_);
            const double next = inner(residual_, k_residual_);
            if (!(next > target)) break;
            const T beta = static_cast<T>(next / square);
            for (std::size_t at = 0; at < rows_ * stride_; ++at) {
                direction_[at] = residual_[at] + beta * direction_[at];
                k_direction_[at] = k_residual_[at] + beta * k_direction_[at];
            }
            square = next;
        }
    }

    // image = direction + W^ K direction; returns <direction, image> in the inner product of K.
    double apply_curvature() {
        CurvatureColumns<T> columns{.n_rows = rows_,
                                    .stride = stride_,
                                    .p = p_.data(),
                                    .weights = problem_.weights.data(),
                                    .values = k_direction_.data(),
                                    .shift = nullptr,
                                    .direction = direction_.data(),
                                    .out = nullptr};
        std::vector<T> shift(rows_);
        if (problem_.with_bias) {
            std::vector<double> sums = curvature_pass(columns, rows_);
            solve_curvature(rows_, !problem_.pinned, curvature_, sums.data());
            for (std::size_t r = 0; r < rows_; ++r) shift[r] = static_cast<T>(sums[r]);
            columns.shift = shift.data();
        }
        columns.out = image_.data();
        return curvature_pass(columns, 0)[0];
    }

    // Sums over chunks in their order: [n_sums] of them, or the product alone.
    std::vector<double> curvature_pass(const CurvatureColumns<T>& columns, std::size_t n_sums) {
        const std::size_t n_chunks = problem_.gram->n_chunks(), width = std::max<std::size_t>(n_sums, 1);
        std::vector<double> partial(n_chunks * width, 0.0), total(width, 0.0);
        team_.run(n_chunks, [&](std::size_t, std::size_t chunk) {
            CurvatureSums sums{.sums = n_sums ? partial.data() + chunk * width : nullptr};
            native_.curvature_product(columns, chunk * Gram<T>::kChunk, std::min(n_, (chunk + 1) * Gram<T>::kChunk),
                                      sums);
            if (!n_sums) partial[chunk] = sums.product;
        });
        for (std::size_t chunk = 0; chunk < n_chunks; ++chunk)
            for (std::size_t k = 0; k < width; ++k) total[k] += partial[chunk * width + k];
        return total;
    }

    // Armijo's rule with halving; false where no step goes down.
    bool line_search(double& square, double& loss, double objective) {
        if (problem_.rough && exact_) product(step_, k_step_);
        const double cross = inner(coefficients_, k_step_), length = inner(step_, k_step_);
        // <gradient, step> = <B - e, K step>, by the probabilities that are still those of the old point.
        double slope = cross;
        for (std::size_t i = 0; i < n_; ++i) {
            const double weight = static_cast<double>(problem_.weights[i]);
            for (std::size_t r = 0; r < rows_; ++r)
                slope +=
                    weight * static_cast<double>(p_[r * stride_ + i]) * static_cast<double>(k_step_[r * stride_ + i]);
            const int row = problem_.labels[i] - (problem_.pinned ? 1 : 0);
            if (row >= 0) slope -= weight * static_cast<double>(k_step_[static_cast<std::size_t>(row) * stride_ + i]);
        }
        const std::vector<double> old_bias = bias_;
        double t = 1.0;
        for (int half = 0; half < 25; ++half, t *= 0.5) {
            const T factor = static_cast<T>(t);
            for (std::size_t at = 0; at < rows_ * stride_; ++at) trial_[at] = scores_[at] + factor * k_step_[at];
            const double next_loss = fit_bias(trial_);
            const double next_square = square + 2.0 * t * cross + t * t * length;
            if (0.5 * next_square + next_loss <= objective + 1e-4 * t * slope) {
                for (std::size_t at = 0; at < rows_ * stride_; ++at) coefficients_[at] += factor * step_[at];
                std::swap(scores_, trial_);
                loss = next_loss;
                square = problem_.scores ? next_square : inner(coefficients_, scores_);
                return true;
            }
            bias_ = old_bias;
        }
        fit_bias(scores_);
        return false;
    }

    const KernelProblem<T>& problem_;
    const StopRule& rule_;
    const NewtonSettings& settings_;
    ThreadTeam& team_;
    const Report& report_;
    const KernelRoutines<T>& native_;
    const std::size_t n_, rows_, stride_;
    std::vector<double> bias_;
    std::vector<T> bias_rounded_;
    std::vector<double> curvature_;
    Clock clock_;
    double passes_ = 0.0;
    bool exact_;
    Aligned<T> coefficients_, scores_, p_, residual_, k_residual_, direction_, k_direction_, step_, k_step_, image_,
        trial_;
    Aligned<T> by_point_;
    Aligned<float> rough_in_, rough_out_;
};

}  // namespace

template <class T>
KernelSolution solve_newton(const KernelProblem<T>& problem, const KernelStart& start, const StopRule& rule,
                            const NewtonSettings& settings, ThreadTeam& team, const Report& report) {
    return NewtonCg<T>(problem, rule, settings, team, report).solve(start);
}

template KernelSolution solve_newton(const KernelProblem<float>&, const KernelStart&, const StopRule&,
                                     const NewtonSettings&, ThreadTeam&, const Report&);
template KernelSolution solve_newton(const KernelProblem<double>&, const KernelStart&, const StopRule&,
                                     const NewtonSettings&, ThreadTeam&, const Report&);

}  // namespace dualfield
