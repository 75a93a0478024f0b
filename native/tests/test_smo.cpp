// Sequential minimal optimisation against brute force: optimality, certificates, corner cases.
#include <cmath>
#include <limits>
#include <vector>

#include "check.hpp"
#include "dualfield/objectives/kernel_problem.hpp"
#include "kernel_reference.hpp"

using namespace dualfield;
using namespace dualfield::testing;

namespace {

const Report kSilent = [](const Progress&) { return true; };
const auto kSecond = SmoSettings::Partner::second_order;

template <class T>
KernelSolution solve_by(bool binary, Gram<T>& gram, const SmallProblem<T>& small, double tolerance,
                        const SmoSettings& settings = {}, const KernelStart& start = {}, const Report& report = kSilent,
                        double most_passes = 1e5) {
    ThreadTeam team(1);
    const KernelProblem<T> problem = small.over(gram);
    const StopRule rule{.tolerance = tolerance, .most_passes = most_passes};
    return binary ? solve_smo_binary(problem, start, rule, settings, team, report)
                  : solve_smo_multiclass(problem, start, rule, settings, team, report);
}

template <class T>
KernelSolution solve(bool binary, const SmallProblem<T>& small, double tolerance, const SmoSettings& settings = {},
                     const KernelStart& start = {}, const Report& report = kSilent, double most_passes = 1e5) {
    BorrowedGram<T> gram(small.kernel.data(), small.size(), small.size());
    return solve_by(binary, gram, small, tolerance, settings, start, report, most_passes);
}

// Feasible; and objective and gap are those of the returned point, recomputed in long double from nothing else.
template <class T>
void check_certificate(const SmallProblem<T>& small, const KernelSolution& solution) {
    const std::size_t n = small.size(), rows = small.n_rows();
    const std::vector<Real> b(solution.coefficients.begin(), solution.coefficients.end());
    const std::vector<Real> bias(solution.bias.begin(), solution.bias.end());
    CHECK(b.size() == n * rows && bias.size() == rows);
    Real mass = 0;
    for (const T weight : small.weights) mass += static_cast<Real>(weight);
    for (std::size_t r = 0; r < rows; ++r) {
        Real sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += b[i * rows + r];
        if (small.with_bias) CHECK(std::abs(sum) <= 1e-12L * mass);
        if (!small.with_bias) CHECK(bias[r] == 0);
    }
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t r = 0; r < rows; ++r) {
            const Real weight = static_cast<Real>(small.weights[i]), own = weight * small.indicator(i, r);
            CHECK(b[i * rows + r] <= own && b[i * rows + r] >= own - weight);
        }
    const Real primal = small.objective(b, bias), gap = primal - small.dual(b);
    // What single precision scores leave open: their error times the masses, and its square.
    const Real rounding =
        sizeof(T) == 4 ? 3e-6L * std::abs(primal) * std::max<Real>(1, mass / Real(n)) : 1e-11L * primal;
    CHECK_NEAR(solution.objective, static_cast<double>(primal), static_cast<double>(rounding));
    CHECK_NEAR(solution.gap, static_cast<double>(gap), static_cast<double>(1e-6L * gap + rounding));
    CHECK(solution.gap >= 0.0);
}

template <class T>
void check_optimal(const SmallProblem<T>& small, const KernelSolution& solution, double tolerance) {
    check_certificate(small, solution);
    CHECK(solution.outcome == Outcome::converged);
    CHECK(solution.gap <= tolerance * (solution.objective - solution.gap));
    const ReferenceSolution best = reference(small);
    const double optimum = static_cast<double>(best.objective), slack = sizeof(T) == 4 ? 1e-4 : 1e-10;
    CHECK(solution.objective >= optimum * (1.0 - slack));
    CHECK(solution.objective <= optimum * (1.0 + tolerance + slack));
}

// B = c (D - softmax(F + b)), and the same B and b as by brute force.
template <class T>
void check_conditions(const SmallProblem<T>& small, const KernelSolution& solution, double tolerance) {
    const ReferenceSolution best = reference(small);
    const std::size_t rows = small.n_rows();
    const std::vector<Real> b(solution.coefficients.begin(), solution.coefficients.end());
    Real loss;
    const std::vector<Real> p =
        small.probabilities(small.scores(b), {solution.bias.begin(), solution.bias.end()}, loss);
    for (std::size_t k = 0; k < b.size(); ++k) {
        const Real weight = static_cast<Real>(small.weights[k / rows]);
        const Real wanted = weight * (small.indicator(k / rows, k % rows) - p[k]);
        CHECK_NEAR(static_cast<double>(b[k] / weight), static_cast<double>(wanted / weight), tolerance);
        CHECK_NEAR(static_cast<double>(b[k] / weight), static_cast<double>(best.coefficients[k] / weight), tolerance);
    }
    for (std::size_t r = 0; r < rows; ++r)
        CHECK_NEAR(solution.bias[r], static_cast<double>(best.bias[r]), 10.0 * tolerance);
}

template <class T>
SmallProblem<T> make(std::size_t n, std::size_t n_classes, double C, bool pinned, bool with_bias, unsigned seed = 1) {
    SmallProblem<T> small(n, n_classes, C, true, seed);
    small.pinned = pinned;
    small.with_bias = with_bias;
    return small;
}

// Positive definite, with ties between classes.
std::vector<double> class_kernel(std::size_t n) {
    std::vector<double> kernel(n * n);
    for (std::size_t r = 0; r < n; ++r)
        for (std::size_t s = 0; s < n; ++s)
            kernel[r * n + s] = (r == s ? 1.0 : 0.0) + 0.4 * std::cos(double(r) - double(s));
    return kernel;
}

template <class T>
void binary_over_all_C(double tolerance) {
    for (const double C : {1e-4, 1e-2, 1.0, 1e2, 1e4})
        for (const bool with_bias : {true, false})
            for (const auto partner : {SmoSettings::Partner::first_order, kSecond}) {
                const auto small = make<T>(31, 2, C, true, with_bias);
                check_optimal(small, solve(true, small, tolerance, {.partner = partner}), tolerance);
            }
}

template <class T>
void multiclass_over_all_C(double tolerance) {
    for (const double C : {1e-4, 1e-2, 1.0, 1e2, 1e4})
        for (const bool with_bias : {true, false})
            for (const bool pinned : {true, false}) {
                const auto small = make<T>(20, 3, C, pinned, with_bias);
                check_optimal(small, solve(false, small, tolerance), tolerance);
            }
}

}  // namespace

TEST(binary_smo_reaches_the_optimum_in_double_precision) {
    binary_over_all_C<double>(1e-9);
}

TEST(binary_smo_reaches_the_optimum_in_single_precision) {
    binary_over_all_C<float>(1e-4);
}

TEST(multiclass_smo_reaches_the_optimum_in_double_precision) {
    multiclass_over_all_C<double>(1e-8);
}

TEST(multiclass_smo_reaches_the_optimum_in_single_precision) {
    multiclass_over_all_C<float>(1e-3);
}

TEST(smo_satisfies_the_optimality_conditions) {
    for (const bool with_bias : {true, false}) {
        for (const auto partner : {SmoSettings::Partner::first_order, kSecond}) {
            const auto small = make<double>(31, 2, 2.0, true, with_bias);
            check_conditions(small, solve(true, small, 1e-13, {.partner = partner}), 1e-5);
        }
        for (const bool pinned : {true, false}) {
            const auto small = make<double>(20, 4, 2.0, pinned, with_bias);
            check_conditions(small, solve(false, small, 1e-13), 1e-5);
        }
    }
}

TEST(smo_takes_a_kernel_between_classes) {
    for (const bool with_bias : {true, false})
        for (const bool pinned : {true, false}) {
            auto small = make<double>(20, 4, 3.0, pinned, with_bias);
            small.label_kernel = class_kernel(small.n_rows());
            const auto solution = solve(false, small, 1e-12, {.repeats = 3});
            check_optimal(small, solution, 1e-12);
            check_conditions(small, solution, 1e-4);
            auto single = make<float>(20, 4, 3.0, pinned, with_bias);
            single.label_kernel = small.label_kernel;
            check_optimal(single, solve(false, single, 1e-4), 1e-4);
        }
}

TEST(smo_gap_holds_far_from_the_optimum) {
    for (const double C : {1e-2, 1.0, 1e2, 1e4})
        for (const bool with_bias : {true, false})
            for (const double passes : {1.0, 1.3, 2.0, 4.0}) {
                const auto two = make<double>(40, 2, C, true, with_bias, 5);
                for (const auto partner : {SmoSettings::Partner::first_order, kSecond}) {
                    const auto solution = solve(true, two, 1e-14, {.partner = partner}, {}, kSilent, passes);
                    check_certificate(two, solution);
                    CHECK(solution.outcome != Outcome::interrupted && solution.passes < passes + 2.5);
                }
                const auto three = make<double>(21, 3, C, false, with_bias, 5);
                const auto solution = solve(false, three, 1e-14, {}, {}, kSilent, passes);
                check_certificate(three, solution);
                CHECK(solution.outcome != Outcome::interrupted && solution.passes < passes + 2.5);
            }
}

TEST(smo_bears_duplicates_with_conflicting_labels) {
    for (const bool with_bias : {true, false})
        for (const double C : {1e-2, 1.0, 1e3}) {
            auto two = make<double>(24, 2, C, true, with_bias);
            auto three = make<double>(24, 3, C, false, with_bias);
            for (std::size_t i = 0; i < 24; ++i)
                for (int f = 0; f < 2; ++f) {
                    two.features[2 * i + f] = two.features[2 * (i / 6) + f];
                    three.features[2 * i + f] = three.features[2 * (i / 6) + f];
                }
            two.fill();
            three.fill();
            for (const auto partner : {SmoSettings::Partner::first_order, kSecond})
                check_optimal(two, solve(true, two, 1e-9, {.partner = partner}), 1e-9);
            check_optimal(three, solve(false, three, 1e-8), 1e-8);
        }
}

TEST(smo_bears_a_class_of_one_point) {
    for (const double C : {1e-4, 1.0, 1e4}) {
        auto two = make<double>(25, 2, C, true, true);
        auto three = make<double>(25, 3, C, false, true);
        for (std::size_t i = 0; i < 25; ++i) {
            two.labels[i] = i == 7;
            three.labels[i] = i == 7 ? 2 : three.labels[i] % 2;
        }
        for (const auto partner : {SmoSettings::Partner::first_order, kSecond})
            check_optimal(two, solve(true, two, 1e-9, {.partner = partner}), 1e-9);
        check_optimal(three, solve(false, three, 1e-8), 1e-8);
        std::fill(two.labels.begin(), two.labels.end(), 1);
        std::fill(three.labels.begin(), three.labels.end(), 1);
        CHECK_THROWS(solve(true, two, 1e-3), std::invalid_argument);
        CHECK_THROWS(solve(false, three, 1e-3), std::invalid_argument);
        two.with_bias = three.with_bias = false;
        check_optimal(two, solve(true, two, 1e-9), 1e-9);
        check_optimal(three, solve(false, three, 1e-8), 1e-8);
    }
}

TEST(two_class_softmax_is_the_binary_problem_at_twice_C) {
    const auto binary = make<double>(30, 2, 3.0, true, true), pinned = make<double>(30, 2, 3.0, true, true);
    auto softmax = make<double>(30, 2, 3.0, false, true);
    for (double& weight : softmax.weights) weight *= 0.5;
    const auto a = solve(true, binary, 1e-12), b = solve(false, pinned, 1e-12), c = solve(false, softmax, 1e-12);
    CHECK_NEAR(a.objective, b.objective, 1e-9 * a.objective);
    CHECK_NEAR(a.objective, 2.0 * c.objective, 1e-9 * a.objective);
    CHECK_NEAR(a.bias[0], b.bias[0], 1e-4);
    CHECK_NEAR(a.bias[0], c.bias[1] - c.bias[0], 1e-4);
    for (std::size_t i = 0; i < 30; ++i) {
        CHECK_NEAR(a.coefficients[i], b.coefficients[i], 1e-4);
        CHECK_NEAR(a.coefficients[i], 2.0 * c.coefficients[2 * i + 1], 1e-4);
    }
}

TEST(binary_smo_stops_at_the_tolerance_of_the_paper) {
    for (const double tau : {1e-1, 1e-3, 1e-5})
        for (const auto partner : {SmoSettings::Partner::first_order, kSecond}) {
            const auto small = make<double>(40, 2, 2.0, true, true);
            const auto solution = solve(true, small, 0.0, {.partner = partner, .tau = tau});
            CHECK(solution.outcome == Outcome::converged);
            check_certificate(small, solution);
            const std::vector<Real> b(solution.coefficients.begin(), solution.coefficients.end());
            const std::vector<Real> scores = small.scores(b);
            Real low = 1e30L, high = -1e30L;
            for (std::size_t i = 0; i < small.size(); ++i) {
                const Real p = small.indicator(i, 0) - b[i] / static_cast<Real>(small.weights[i]);
                const Real pull = scores[i] - std::log(p / (1 - p));
                low = std::min(low, pull);
                high = std::max(high, pull);
            }
            CHECK(high - low <= 2.0L * static_cast<Real>(tau) * (1 + 1e-9L));
        }
}

TEST(smo_starts_from_given_coefficients) {
    for (const bool with_bias : {true, false}) {
        const auto two = make<double>(30, 2, 5.0, true, with_bias), three = make<double>(30, 3, 5.0, false, with_bias);
        const auto first = solve(true, two, 1e-10), second = solve(false, three, 1e-10);
        const auto again = solve(true, two, 1e-9, {}, {first.coefficients, first.bias});
        CHECK(again.n_iterations == 0 && again.outcome == Outcome::converged);
        CHECK(solve(false, three, 1e-9, {}, {second.coefficients, second.bias}).n_iterations <= 2);
        // Neither feasible nor within the box.
        std::vector<double> wild(30 * 3), bias{1.0, -1.0, 50.0};
        for (std::size_t k = 0; k < wild.size(); ++k) wild[k] = 20.0 * std::sin(double(k * k));
        check_optimal(two, solve(true, two, 1e-9, {}, {std::span(wild).first(30), std::span(bias).first(1)}), 1e-9);
        check_optimal(three, solve(false, three, 1e-8, {}, {wild, bias}), 1e-8);
        CHECK(solve(true, two, 1e-9, {}, {std::vector<double>(30, 0.0), {}}).outcome == Outcome::converged);
    }
}

TEST(smo_stops_where_it_is_told_to) {
    for (const bool with_bias : {true, false})
        for (const std::size_t wanted : {1, 3}) {
            const auto two = make<double>(60, 2, 10.0, true, with_bias),
                       three = make<double>(30, 3, 10.0, false, with_bias);
            std::size_t n_calls = 0;
            Progress last{};
            const Report report = [&](const Progress& progress) {
                CHECK(progress.gap >= 0.0 && progress.passes >= last.passes && progress.seconds >= last.seconds);
                CHECK_NEAR(progress.objective - progress.dual, progress.gap, 1e-9 * progress.objective);
                last = progress;
                return ++n_calls < wanted;
            };
            const auto a = solve(true, two, 1e-14, {}, {}, report);
            CHECK(a.outcome == Outcome::interrupted && n_calls == wanted);
            check_certificate(two, a);
            n_calls = 0;
            last = {};
            const auto b = solve(false, three, 1e-14, {}, {}, report);
            CHECK(b.outcome == Outcome::interrupted && n_calls == wanted);
            check_certificate(three, b);
        }
}

TEST(smo_gives_up_where_single_precision_ends) {
    for (const bool with_bias : {true, false}) {
        const auto two = make<float>(30, 2, 50.0, true, with_bias);
        const auto three = make<float>(20, 3, 50.0, false, with_bias);
        const auto a = solve(true, two, 1e-16), b = solve(false, three, 1e-16);
        CHECK(a.outcome == Outcome::stalled || a.outcome == Outcome::converged);
        CHECK(b.outcome == Outcome::stalled || b.outcome == Outcome::converged);
        CHECK(a.gap < 1e-5 * a.objective && b.gap < 1e-5 * b.objective);
    }
}

TEST(smo_refuses_what_is_no_kernel) {
    for (const bool with_bias : {true, false})
        for (const bool binary : {true, false}) {
            const auto fresh = [&] { return make<double>(12, binary ? 2 : 3, 2.0, binary, with_bias); };
            auto negative = fresh();
            negative.kernel[5 * 12 + 5] = -0.5;
            CHECK_THROWS(solve(binary, negative, 1e-6), NotPositive);
            auto missing = fresh();
            missing.kernel[3 * 12 + 4] = missing.kernel[4 * 12 + 3] = std::nan("");
            CHECK_THROWS(solve(binary, missing, 1e-6), NotPositive);
            auto infinite = fresh();
            infinite.kernel[0] = std::numeric_limits<double>::infinity();
            CHECK_THROWS(solve(binary, infinite, 1e-6), NotPositive);
        }
    auto indefinite = make<double>(12, 2, 2.0, true, true);
    for (std::size_t i = 0; i < 12; ++i)
        for (std::size_t j = 0; j < 12; ++j) indefinite.kernel[i * 12 + j] = i == j ? 1.0 : 3.0;
    CHECK_THROWS(solve(true, indefinite, 1e-6), NotPositive);
    auto classes = make<double>(12, 3, 2.0, false, false);
    classes.label_kernel = {1, 2, 2, 2, 1, 2, 2, 2, 1};
    CHECK_THROWS(solve(false, classes, 1e-6), NotPositive);
}

TEST(smo_gives_the_same_with_few_cached_rows) {
    const KernelFunction function{.kind = KernelKind::rbf, .gamma = 0.7};
    const auto compare = [&]<class T>(SmallProblem<T> small, bool binary, double tolerance) {
        const std::size_t n = small.size();
        const Matrix<double> matrix{.n = n, .n_features = 2, .values = small.features.data()};
        const Points<T> points(matrix, function, {}, true);
        StoredGram<T> stored(function, points, 1, [] {});
        std::vector<T> diagonal(n);
        kernel_diagonal(function, points, diagonal.data());
        CachedGram<T> cached(diagonal, 0, CachedGram<T>::from_points(function, points));
        CHECK(cached.most_rows() < n);
        for (const auto partner : {SmoSettings::Partner::first_order, kSecond}) {
            const auto a = solve_by(binary, stored, small, tolerance, {.partner = partner});
            const auto b = solve_by(binary, cached, small, tolerance, {.partner = partner});
            CHECK(a.outcome == Outcome::converged && b.outcome == Outcome::converged);
            CHECK_NEAR(a.objective, b.objective, tolerance * a.objective);
            for (std::size_t k = 0; k < a.coefficients.size(); ++k)
                CHECK_NEAR(a.coefficients[k], b.coefficients[k], std::sqrt(tolerance) * 10.0);
        }
    };
    for (const bool with_bias : {true, false}) {
        compare(make<double>(150, 2, 1.0, true, with_bias), true, 1e-9);
        compare(make<float>(150, 2, 1.0, true, with_bias), true, 1e-5);
        compare(make<double>(120, 3, 1.0, false, with_bias), false, 1e-9);
        compare(make<float>(120, 3, 1.0, false, with_bias), false, 1e-5);
    }
}

TEST(smo_does_not_depend_on_threads) {
    // Enough points for more than one piece of columns.
    LineGram gram(16500);
    std::vector<std::int32_t> labels;
    for (std::size_t i = 0; i < gram.size(); ++i)
        labels.push_back(std::sin(double(i * i) + 1.0) + std::cos(double(i)) > 0.0);
    const std::vector<float> weights(gram.size(), 0.1F);
    for (const bool binary : {true, false}) {
        const KernelProblem<float> problem{&gram, 2, true, binary, labels, weights};
        const StopRule rule{.tolerance = 1e-12, .most_passes = binary ? 1.02 : 1.5};
        std::vector<KernelSolution> solutions;
        for (const std::size_t n_threads : {1, 3}) {
            ThreadTeam team(n_threads);
            const SmoSettings settings{.partner = kSecond};
            solutions.push_back(binary ? solve_smo_binary(problem, {}, rule, settings, team, kSilent)
                                       : solve_smo_multiclass(problem, {}, rule, settings, team, kSilent));
        }
        CHECK(solutions[0].n_iterations > 0 && solutions[0].outcome == Outcome::iteration_limit);
        CHECK(solutions[0].coefficients == solutions[1].coefficients && solutions[0].bias == solutions[1].bias);
        CHECK(solutions[0].gap == solutions[1].gap && solutions[0].objective == solutions[1].objective);
    }
}
