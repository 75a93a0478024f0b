// Solvers on kernel matrices.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "dualfield/kernels/gram.hpp"
#include "dualfield/objectives/kernel_problem.hpp"
#include "kernel_matrix.hpp"
#include "progress.hpp"
#include "register.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dualfield::bindings {

namespace {

struct Task {
    Input<std::int32_t, 1> labels;
    Input<double, 1> weights;
    std::size_t n_classes;
    bool pinned, with_bias;
    std::optional<Input<double, 2>> label_kernel;
    std::optional<Input<double, 2>> start;
    std::optional<Input<double, 1>> start_bias;
    double tolerance, most_passes;
    std::size_t n_threads;
    nb::object callbacks;
    const KernelMatrix* rough;
    std::optional<Input<double, 2>> correction;
    double noise;

    // n: points of the kernel matrix. Everything that solvers read by row or by class must be there.
    void check(std::size_t n) const {
        require(n_classes > (pinned ? 1 : 0), "there must be a class beside the one that is pinned");
        require(labels.size() == n && weights.size() == n, "labels and weights must have an entry for each point");
        for (std::size_t i = 0; i < n; ++i)
            require(labels.data()[i] >= 0 && static_cast<std::size_t>(labels.data()[i]) < n_classes,
                    "labels must be codes in [0, n_classes)");
        const std::size_t rows = n_classes - (pinned ? 1 : 0);
        const auto is = [](const auto& array, std::size_t first, std::size_t second) {
            return !array || (array->shape(0) == first && array->shape(1) == second);
        };
        require(is(label_kernel, n_classes, n_classes), "label_kernel must have shape (n_classes, n_classes)");
        require(is(start, n, rows), "start must have a row for each point and a column for each class");
        require(!start == !start_bias && (!start || start_bias->size() == rows), "start_bias belongs to start");
    }
};

// Looks after the calls of a kernel function in Python while a solver runs.
class Watching {
  public:
    explicit Watching(std::shared_ptr<KernelCalls> calls) : calls_(std::move(calls)) {
        if (calls_) *calls_ = {.is_watched = true};
    }
    ~Watching() {
        if (calls_) *calls_ = {};
    }
    Watching(const Watching&) = delete;
    Watching& operator=(const Watching&) = delete;
    bool is_interrupted() const { return calls_ && calls_->is_interrupted; }

  private:
    std::shared_ptr<KernelCalls> calls_;
};

template <class Solve>
nb::object run(const KernelMatrix& matrix, const Task& task, Solve&& solve) {
    task.check(std::visit([](const auto& gram) { return gram->size(); }, matrix.gram));
    Watch watch(task.callbacks);
    const Watching calls(matrix.calls);
    KernelSolution solution;
    {
        const nb::gil_scoped_release unlocked;
        const Report report = [&](const Progress& now) { return watch(now) && !calls.is_interrupted(); };
        const StopRule rule{.tolerance = task.tolerance, .most_passes = task.most_passes};
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
                                               .correction = data_or_null(task.correction),
                                               .noise = task.noise};
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
    nb::exception<SinglePrecision>(module, "SinglePrecisionError", PyExc_ValueError);

    nb::class_<Task>(module, "KernelTask", "A softmax problem on a kernel matrix, and when to stop.")
        .def(
            "__init__",
            [](Task* self, Input<std::int32_t, 1> labels, Input<double, 1> weights, std::size_t n_classes, bool pinned,
               bool with_bias, std::optional<Input<double, 2>> label_kernel, std::optional<Input<double, 2>> start,
               std::optional<Input<double, 1>> start_bias, double tolerance, double most_passes, std::size_t n_threads,
               nb::object callbacks, const KernelMatrix* rough, std::optional<Input<double, 2>> correction,
               double noise) {
                new (self)
                    Task{labels,    weights,     n_classes, pinned,    with_bias, label_kernel, start, start_bias,
                         tolerance, most_passes, n_threads, callbacks, rough,     correction,   noise};
            },
            nb::kw_only(), "labels"_a, "weights"_a, "n_classes"_a, "pinned"_a, "with_bias"_a, "label_kernel"_a.none(),
            "start"_a.none(), "start_bias"_a.none(), "tolerance"_a, "most_passes"_a, "n_threads"_a,
            "callbacks"_a.none(), "rough"_a.none() = nb::none(), "correction"_a.none() = nb::none(), "noise"_a = 0.0);

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
