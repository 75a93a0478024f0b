// Kernels, kernel matrices and the solvers on them.
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "dualfield/gram.hpp"
#include "dualfield/kernel_problem.hpp"
#include "dualfield/routines.hpp"
#include "register.hpp"
#include "watch.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dualfield::bindings {

namespace {

KernelKind kind_of(const std::string& name) {
    if (name == "linear") return KernelKind::linear;
    if (name == "poly") return KernelKind::poly;
    if (name == "rbf") return KernelKind::rbf;
    if (name == "laplacian") return KernelKind::laplacian;
    if (name == "sigmoid") return KernelKind::sigmoid;
    throw std::invalid_argument("no kernel function '" + name + "'");
}

// Signals are looked at between pieces of long work; an interrupt ends it as a Python exception.
void check_signals() {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

template <class S>
using Dense = Input<S, 2>;
// values, column indices, row starts, number of columns
template <class S>
using Compressed = std::tuple<Input<S, 1>, Input<std::int32_t, 1>, Input<std::int64_t, 1>, std::size_t>;
using AnyMatrix = std::variant<Dense<float>, Dense<double>, Compressed<float>, Compressed<double>>;

template <class S>
Matrix<S> view(const Dense<S>& array) {
    return {.n = array.shape(0), .n_features = array.shape(1), .values = array.data()};
}
template <class S>
Matrix<S> view(const Compressed<S>& parts) {
    const auto& [values, indices, indptr, n_features] = parts;
    return {.n = indptr.shape(0) - 1,
            .n_features = n_features,
            .values = values.data(),
            .indptr = indptr.data(),
            .indices = indices.data()};
}

template <class T>
Points<T> make_points(const AnyMatrix& matrix, const KernelFunction& function, std::span<const double> shift,
                      bool panels) {
    return std::visit([&](const auto& array) { return Points<T>(view(array), function, shift, panels); }, matrix);
}

std::vector<double> shift_of(const AnyMatrix& matrix, const KernelFunction& function) {
    return std::visit([&](const auto& array) { return natural_shift(view(array), function); }, matrix);
}

struct KernelMatrix {
    std::variant<std::shared_ptr<Gram<float>>, std::shared_ptr<Gram<double>>> gram;
    std::shared_ptr<void> held;  // points, or the caller's array
    nb::object owner;
};

template <class T>
KernelMatrix from_points(const AnyMatrix& matrix, const KernelFunction& function, std::optional<std::size_t> budget,
                         std::size_t n_threads) {
    const nb::gil_scoped_release unlocked;
    auto points = std::make_shared<Points<T>>(make_points<T>(matrix, function, shift_of(matrix, function), true));
    std::shared_ptr<Gram<T>> gram;
    if (!budget || StoredGram<T>::bytes(points->size()) <= *budget) {
        gram = std::make_shared<StoredGram<T>>(function, *points, n_threads, check_signals);
        return {.gram = gram, .held = nullptr, .owner = {}};
    }
    std::vector<T> diagonal(points->size());
    kernel_diagonal(function, *points, diagonal.data());
    gram = std::make_shared<CachedGram<T>>(std::move(diagonal), *budget, CachedGram<T>::from_points(function, *points));
    return {.gram = gram, .held = points, .owner = {}};
}

template <class T>
KernelMatrix from_array(Dense<T> array) {
    return {.gram = std::shared_ptr<Gram<T>>(
                std::make_shared<BorrowedGram<T>>(array.data(), array.shape(0), array.shape(1))),
            .held = nullptr,
            .owner = nb::cast(array)};
}

// Rows from Python: rows(points) -> array (n_points, n) of float64.
KernelMatrix from_function(const nb::object& rows, const Input<double, 1>& diagonal, std::size_t budget) {
    const std::size_t n = diagonal.shape(0);
    auto fill = [rows, n](std::span<const std::int32_t> points, double* const* targets, ThreadTeam&) {
        const nb::gil_scoped_acquire lock;
        Output<std::int32_t> wanted({points.size()});
        std::copy(points.begin(), points.end(), wanted.data());
        const nb::object answer = rows(wanted.release());
        const auto block = nb::cast<Input<double, 2>>(answer);
        if (block.shape(0) != points.size() || block.shape(1) != n)
            throw std::invalid_argument("the kernel function returned a block of another shape than asked for");
        for (std::size_t i = 0; i < points.size(); ++i) std::copy_n(block.data() + i * n, n, targets[i]);
    };
    std::vector<double> values(diagonal.data(), diagonal.data() + n);
    return {
        .gram = std::shared_ptr<Gram<double>>(std::make_shared<CachedGram<double>>(std::move(values), budget, fill)),
        .held = nullptr,
        .owner = rows};
}

template <class T>
KernelMatrix from_features(const Dense<T>& features) {
    return {.gram = std::shared_ptr<Gram<T>>(
                std::make_shared<FactoredGram<T>>(features.data(), features.shape(0), features.shape(1))),
            .held = nullptr,
            .owner = {}};
}

// The same matrix in single precision: rounding is cheaper than computing it again.
KernelMatrix rounded(const KernelMatrix& matrix) {
    const nb::gil_scoped_release unlocked;
    Gram<double>& gram = *std::get<1>(matrix.gram);
    const std::size_t n = gram.size(), stride = padded_to_panels<float>(n);
    auto values = std::make_shared<Aligned<float>>(n * stride);
    ThreadTeam alone(1);
    for (std::size_t i = 0; i < n; ++i) {
        const auto point = static_cast<std::int32_t>(i);
        const double* row;
        gram.rows({&point, 1}, &row, alone);
        float* target = values->data() + i * stride;
        for (std::size_t j = 0; j < n; ++j) target[j] = static_cast<float>(row[j]);
    }
    auto borrowed = std::make_shared<BorrowedGram<float>>(values->data(), n, stride);
    return {.gram = std::shared_ptr<Gram<float>>(borrowed), .held = values, .owner = {}};
}

// scores [n][rows] = K(x, points) coefficients, in chunks of points and of x; no kernel matrix is kept.
nb::ndarray<nb::numpy, double> kernel_scores(const AnyMatrix& points, const AnyMatrix& x,
                                             const Input<double, 2>& coefficients, const KernelFunction& function,
                                             std::size_t n_threads) {
    const std::size_t n_rows = coefficients.shape(1);
    std::size_t n_columns = 0;
    std::visit([&](const auto& array) { n_columns = view(array).n; }, x);
    Output<double> out({n_columns, n_rows});
    {
        const nb::gil_scoped_release unlocked;
        const std::vector<double> shift = shift_of(points, function);
        const Points<double> rows = make_points<double>(points, function, shift, false),
                             columns = make_points<double>(x, function, shift, true);
        constexpr std::size_t kColumns = 192, kRows = 96;
        const auto& native = routines().kernel<double>();
        parallel_for((n_columns + kColumns - 1) / kColumns, n_threads, [&](std::size_t, std::size_t task) {
            const std::size_t first = task * kColumns, last = std::min(n_columns, first + kColumns);
            Aligned<double> block(kRows * kColumns), scores(n_rows * kColumns, 0.0);
            std::int32_t list[kRows];
            const double* pointers[kRows];
            for (std::size_t i = 0; i < kRows; ++i) pointers[i] = block.data() + i * kColumns;
            for (std::size_t row = 0; row < rows.size(); row += kRows) {
                const std::size_t n = std::min(kRows, rows.size() - row);
                std::iota(list, list + n, static_cast<std::int32_t>(row));
                kernel_block(function, rows, std::span<const std::int32_t>(list, n), columns, first, last, block.data(),
                             kColumns);
                // Whole panels, so that a column's sum does not depend on which others it is computed with.
                native.expand(pointers, n, coefficients.data() + row * n_rows, n_rows, n_rows, scores.data(), kColumns,
                              0, padded_to_panels<double>(last - first));
            }
            for (std::size_t j = first; j < last; ++j)
                for (std::size_t r = 0; r < n_rows; ++r) out.data()[j * n_rows + r] = scores[r * kColumns + j - first];
        });
    }
    return out.release();
}

nb::ndarray<nb::numpy, double> kernel_values(const AnyMatrix& x, const AnyMatrix& y, const KernelFunction& function,
                                             std::size_t n_threads) {
    std::size_t n = 0, m = 0;
    std::visit([&](const auto& array) { n = view(array).n; }, x);
    std::visit([&](const auto& array) { m = view(array).n; }, y);
    Output<double> out({n, m});
    {
        const nb::gil_scoped_release unlocked;
        const std::vector<double> shift = shift_of(y, function);
        const Points<double> rows = make_points<double>(x, function, shift, false),
                             columns = make_points<double>(y, function, shift, true);
        constexpr std::size_t kRows = 24;
        parallel_for((n + kRows - 1) / kRows, n_threads, [&](std::size_t, std::size_t task) {
            const std::size_t width = padded_to_panels<double>(m), first = task * kRows,
                              here = std::min(kRows, n - first);
            Aligned<double> block(kRows * width);
            std::int32_t list[kRows];
            std::iota(list, list + here, static_cast<std::int32_t>(first));
            kernel_block(function, rows, std::span<const std::int32_t>(list, here), columns, 0, m, block.data(), width);
            for (std::size_t i = 0; i < here; ++i)
                std::copy_n(block.data() + i * width, m, out.data() + (first + i) * m);
        });
    }
    return out.release();
}

struct Task {
    Input<std::int32_t, 1> labels;
    Input<double, 1> weights;
    std::size_t n_classes;
    bool pinned, with_bias;
    std::optional<Input<double, 2>> label_kernel;
    std::optional<Input<double, 2>> start;
    std::optional<Input<double, 1>> start_bias;
    double tolerance, most_passes, start_passes, start_seconds;
    std::size_t n_threads;
    nb::object told;
    double interval;  // seconds between two calls of told
    const KernelMatrix* rough;
    std::optional<Input<double, 2>> correction;
};

template <class Solve>
nb::object run(const KernelMatrix& matrix, const Task& task, Solve&& solve) {
    Watch watch(task.told, task.interval, task.start_passes);
    KernelSolution solution;
    {
        const nb::gil_scoped_release unlocked;
        const Report report = [&](const Progress& now) { return watch(now); };
        const StopRule rule{task.tolerance, task.most_passes, task.start_passes, task.start_seconds};
        KernelStart start;
        if (task.start) {
            start.coefficients = {task.start->data(), task.start->shape(0) * task.start->shape(1)};
            start.bias = {task.start_bias->data(), task.start_bias->shape(0)};
        }
        ThreadTeam team(task.n_threads);
        std::visit(
            [&]<class T>(const std::shared_ptr<Gram<T>>& gram) {
                const std::vector<T> weights(task.weights.data(), task.weights.data() + task.weights.shape(0));
                const KernelProblem<T> problem{.gram = gram.get(),
                                               .n_classes = task.n_classes,
                                               .pinned = task.pinned,
                                               .with_bias = task.with_bias,
                                               .labels = {task.labels.data(), task.labels.shape(0)},
                                               .weights = weights,
                                               .label_kernel = data_or_null(task.label_kernel),
                                               .rough = task.rough ? std::get<0>(task.rough->gram).get() : nullptr,
                                               .correction = data_or_null(task.correction)};
                solution = solve(problem, start, rule, team, report);
            },
            matrix.gram);
    }
    const std::size_t rows = task.n_classes - (task.pinned ? 1 : 0);
    Output<double> coefficients({task.labels.shape(0), rows}), bias({rows});
    std::copy(solution.coefficients.begin(), solution.coefficients.end(), coefficients.data());
    std::copy(solution.bias.begin(), solution.bias.end(), bias.data());
    return nb::make_tuple(coefficients.release(), bias.release(), solution.objective, solution.gap,
                          std::string(name_of(solution.outcome)), solution.n_iterations, watch.release());
}

}  // namespace

void register_kernels(nb::module_& module) {
    nb::exception<NotPositive>(module, "NotPositiveError", PyExc_ValueError);

    nb::class_<KernelFunction>(module, "KernelFunction", "A kernel function with its parameters.")
        .def(
            "__init__",
            [](KernelFunction* self, const std::string& name, double gamma, double coef0, double degree) {
                new (self) KernelFunction{kind_of(name), gamma, coef0, degree};
            },
            "name"_a, "gamma"_a, "coef0"_a, "degree"_a);
    module.def("kernel_scores", &kernel_scores, "points"_a, "x"_a, "coefficients"_a, "function"_a, "n_threads"_a,
               "K(x, points) @ coefficients without keeping K.");
    module.def("kernel_values", &kernel_values, "x"_a, "y"_a, "function"_a, "n_threads"_a, "The matrix K(x, y).");

    nb::class_<KernelMatrix>(module, "KernelMatrix",
                             "The kernel matrix of training points: stored, borrowed or cached.")
        .def_static(
            "from_points",
            [](const AnyMatrix& points, const KernelFunction& function, bool single, std::optional<std::size_t> budget,
               std::size_t n_threads) {
                return single ? from_points<float>(points, function, budget, n_threads)
                              : from_points<double>(points, function, budget, n_threads);
            },
            "points"_a, "function"_a, "single"_a, "budget"_a.none(), "n_threads"_a)
        .def_static("from_array", &from_array<float>, "array"_a.noconvert())
        .def_static("from_array", &from_array<double>, "array"_a.noconvert())
        .def_static("from_function", &from_function, "rows"_a, "diagonal"_a, "budget"_a)
        .def_static("from_features", &from_features<float>, "features"_a.noconvert())
        .def_static("from_features", &from_features<double>, "features"_a.noconvert())
        .def_prop_ro(
            "diagonal",
            [](const KernelMatrix& self) {
                return std::visit(
                    [](const auto& gram) {
                        Output<double> out({gram->size()});
                        std::copy(gram->diagonal().begin(), gram->diagonal().end(), out.data());
                        return out.release();
                    },
                    self.gram);
            },
            nb::rv_policy::move)
        .def_prop_ro(
            "single",
            [](const KernelMatrix& self) { return std::holds_alternative<std::shared_ptr<Gram<float>>>(self.gram); })
        .def("rounded", &rounded, "A copy of a stored matrix in single precision.")
        .def(
            "product",
            [](const KernelMatrix& self, const Input<double, 2>& coefficients, std::size_t n_threads) {
                const std::size_t n = coefficients.shape(0), rows = coefficients.shape(1);
                Output<double> out({n, rows});
                {
                    const nb::gil_scoped_release unlocked;
                    ThreadTeam team(n_threads);
                    std::visit(
                        [&]<class T>(const std::shared_ptr<Gram<T>>& gram) {
                            const std::size_t stride = padded_to_panels<T>(n);
                            std::vector<T> given(coefficients.data(), coefficients.data() + n * rows);
                            Aligned<T> scores(rows * stride);
                            const Poll before = gram->poll;
                            gram->poll = check_signals;
                            gram->product(given.data(), rows, scores.data(), stride, team);
                            gram->poll = before;
                            for (std::size_t i = 0; i < n; ++i)
                                for (std::size_t r = 0; r < rows; ++r)
                                    out.data()[i * rows + r] = static_cast<double>(scores[r * stride + i]);
                        },
                        self.gram);
                }
                return out.release();
            },
            "coefficients"_a, "n_threads"_a, "K @ coefficients.");

    nb::class_<Task>(module, "KernelTask", "A softmax problem on a kernel matrix, and when to stop.")
        .def(
            "__init__",
            [](Task* self, Input<std::int32_t, 1> labels, Input<double, 1> weights, std::size_t n_classes, bool pinned,
               bool with_bias, std::optional<Input<double, 2>> label_kernel, std::optional<Input<double, 2>> start,
               std::optional<Input<double, 1>> start_bias, double tolerance, double most_passes, double start_passes,
               double start_seconds, std::size_t n_threads, nb::object told, double interval, const KernelMatrix* rough,
               std::optional<Input<double, 2>> correction) {
                new (self) Task{labels,    weights,    n_classes, pinned,      with_bias,    label_kernel,
                                start,     start_bias, tolerance, most_passes, start_passes, start_seconds,
                                n_threads, told,       interval,  rough,       correction};
            },
            nb::kw_only(), "labels"_a, "weights"_a, "n_classes"_a, "pinned"_a, "with_bias"_a, "label_kernel"_a.none(),
            "start"_a.none(), "start_bias"_a.none(), "tolerance"_a, "most_passes"_a, "start_passes"_a,
            "start_seconds"_a, "n_threads"_a, "told"_a.none(), "interval"_a = 0.05, "rough"_a.none() = nb::none(),
            "correction"_a.none() = nb::none());

    module.def(
        "solve_working_set",
        [](const KernelMatrix& matrix, const Task& task, std::size_t size, double keep, std::size_t most_inner,
           double inner_tolerance, double set_tolerance, double patience) {
            const WorkingSetSettings settings{.size = size,
                                              .keep = keep,
                                              .most_inner = most_inner,
                                              .inner_tolerance = inner_tolerance,
                                              .set_tolerance = set_tolerance,
                                              .patience = patience};
            return run(matrix, task, [&](const auto& problem, auto& start, auto& rule, auto& team, auto& report) {
                return solve_working_set(problem, start, rule, settings, team, report);
            });
        },
        "matrix"_a, "task"_a, "size"_a, "keep"_a, "most_inner"_a, "inner_tolerance"_a, "set_tolerance"_a, "patience"_a,
        "Returns coefficients, bias, objective, gap, outcome, number of iterations, trace.");
    module.def(
        "solve_newton",
        [](const KernelMatrix& matrix, const Task& task, double forcing) {
            const NewtonSettings settings{forcing};
            return run(matrix, task, [&](const auto& problem, auto& start, auto& rule, auto& team, auto& report) {
                return solve_newton(problem, start, rule, settings, team, report);
            });
        },
        "matrix"_a, "task"_a, "forcing"_a, "Returns what solve_working_set returns.");
    module.def(
        "solve_smo",
        [](const KernelMatrix& matrix, const Task& task, bool second_order, double tau, std::uint64_t seed,
           std::size_t repeats) {
            const SmoSettings settings{
                second_order ? SmoSettings::Partner::second_order : SmoSettings::Partner::first_order, tau, seed,
                repeats};
            return run(matrix, task, [&](const auto& problem, auto& start, auto& rule, auto& team, auto& report) {
                return problem.n_classes == 2 && problem.pinned
                           ? solve_smo_binary(problem, start, rule, settings, team, report)
                           : solve_smo_multiclass(problem, start, rule, settings, team, report);
            });
        },
        "matrix"_a, "task"_a, "second_order"_a, "tau"_a, "seed"_a, "repeats"_a,
        "Returns what solve_working_set returns.");
}

}  // namespace dualfield::bindings
