// The ascent on duals whose node scores come from a kernel.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dualfield/solvers/kernel/kernel_ascent.hpp"
#include "kernel_matrix.hpp"
#include "problem_arrays.hpp"
#include "progress.hpp"
#include "register.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

using CodeRows = Input<std::int32_t, 2>;

// What each table has: its kernel matrix, the same in double precision where that is another one, and where to begin.
struct AskedTable {
    const KernelMatrix* matrix;
    const KernelMatrix* exact;
    std::optional<Input<double, 2>> start;
};

struct Ask {
    std::vector<AskedTable> tables;
    AscentSettings settings;
    std::size_t n_threads;
    nb::object callbacks;
};

std::size_t n_points(const KernelMatrix& matrix) {
    return std::visit([](const auto& gram) { return gram->size(); }, matrix.gram);
}

// In the precision of all matrices.
template <class T>
AscentSolution solve(DualBlocks& blocks, const Ask& ask, const Coefficients& start, const Report& report) {
    std::vector<TableGram<T>> grams;
    for (const AskedTable& table : ask.tables) {
        Gram<double>* exact = std::get<1>((table.exact ? table.exact : table.matrix)->gram).get();
        grams.push_back({std::get<std::shared_ptr<Gram<T>>>(table.matrix->gram).get(), exact});
    }
    ThreadTeam team(ask.n_threads);
    return solve_kernel_ascent<T>(grams, blocks, start, ask.settings, team, report);
}

nb::object run(DualBlocks& blocks, Ask& ask) {
    Coefficients start;
    const bool is_single = ask.tables[0].matrix->gram.index() == 0;
    for (std::size_t g = 0; g < ask.tables.size(); ++g) {
        const AskedTable& table = ask.tables[g];
        const std::size_t n = n_points(*table.matrix), width = blocks.width(g);
        const KernelMatrix& exact = table.exact ? *table.exact : *table.matrix;
        require((table.matrix->gram.index() == 0) == is_single, "all matrices must have the same precision");
        require(exact.gram.index() == 1 && n_points(exact) == n, "exact must be the same matrix in double precision");
        require(!table.start || (table.start->shape(0) == n && table.start->shape(1) == width),
                "start must have shape (n_points, n_labels)");
        require(table.start.has_value() == ask.tables[0].start.has_value(), "all tables must have a start, or none");
        if (table.start) start.emplace_back(table.start->data(), table.start->data() + n * width);
    }
    Watch watch(std::move(ask.callbacks));
    AscentSolution solution;
    {
        const nb::gil_scoped_release unlocked;
        const Report report = [&](const Progress& now) { return watch(now); };
        solution = is_single ? solve<float>(blocks, ask, start, report) : solve<double>(blocks, ask, start, report);
    }
    nb::list coefficients;
    for (std::size_t g = 0; g < ask.tables.size(); ++g) {
        Output<double> out({n_points(*ask.tables[g].matrix), blocks.width(g)});
        std::copy(solution.coefficients[g].begin(), solution.coefficients[g].end(), out.data());
        coefficients.append(out.release());
    }
    Output<double> weights({solution.weights.size()});
    std::copy(solution.weights.begin(), solution.weights.end(), weights.data());
    return nb::make_tuple(coefficients, weights.release(), solution.objective, solution.gap,
                          std::string(name_of(solution.outcome)), solution.n_iterations, watch.release());
}

void check_codes(const CodeRows& codes, std::size_t limit, const char* message) {
    for (std::size_t j = 0; j < codes.shape(0) * codes.shape(1); ++j)
        require(codes.data()[j] >= 0 && static_cast<std::size_t>(codes.data()[j]) < limit, message);
}

}  // namespace

void register_kernel_ascent(nb::module_& module) {
    module.def(
        "solve_kernel_table",
        [](const KernelMatrix& matrix, const KernelMatrix* exact, CodeRows members, CodeRows outputs,
           Input<std::int32_t, 1> truth, Input<double, 1> weights, std::size_t n_labels,
           std::optional<Input<double, 2>> cost, std::optional<Input<double, 2>> start, double tolerance,
           double most_passes, std::size_t set_size, std::size_t n_sweeps, std::uint64_t seed, std::size_t n_threads,
           nb::object callbacks) {
            const std::size_t n = members.shape(0), n_slots = members.shape(1), q = outputs.shape(0);
            require(n_slots > 0 && outputs.shape(1) == n_slots, "members and outputs must have the same slots");
            require(truth.size() == n && weights.size() == n, "truth and weights must have one entry for each example");
            require(!cost || (cost->shape(0) == q && cost->shape(1) == q), "cost must have shape (q, q)");
            check_codes(members, n_points(matrix), "members must be in [0, n_points)");
            check_codes(outputs, n_labels, "outputs must be in [0, n_labels)");
            for (std::size_t i = 0; i < n; ++i) {
                require(truth.data()[i] >= 0 && static_cast<std::size_t>(truth.data()[i]) < q,
                        "truth must be in [0, q)");
                require(weights.data()[i] > 0.0, "weights must be positive");
            }
            const auto blocks = table_blocks({.n_labels = n_labels,
                                              .n_slots = n_slots,
                                              .members = {members.data(), n * n_slots},
                                              .outputs = {outputs.data(), q * n_slots},
                                              .truth = {truth.data(), n},
                                              .weights = {weights.data(), n},
                                              .cost = data_or_null(cost)});
            Ask ask{{{&matrix, exact, start}},
                    {tolerance, most_passes, set_size, n_sweeps, seed},
                    n_threads,
                    std::move(callbacks)};
            return run(*blocks, ask);
        },
        "matrix"_a, "exact"_a.none(), "members"_a.noconvert(), "outputs"_a.noconvert(), "truth"_a.noconvert(),
        "weights"_a.noconvert(), "n_labels"_a, "cost"_a.noconvert().none(), "start"_a.noconvert().none(), "tolerance"_a,
        "most_passes"_a, "set_size"_a, "n_sweeps"_a, "seed"_a, "n_threads"_a, "callbacks"_a.none(),
        "Returns coefficients of each table, weights, objective, gap, outcome, number of epochs, trace.");
    module.def(
        "solve_kernel_parts",
        [](const KernelMatrix* matrix, const KernelMatrix* exact, const KernelMatrix* pair_matrix,
           const KernelMatrix* pair_exact, const BoundProblem& bound, double scale,
           std::optional<Input<double, 2>> start, std::optional<Input<double, 2>> pair_start,
           std::optional<Input<double, 1>> start_weights, double tolerance, double most_passes, std::size_t set_size,
           std::size_t n_sweeps, std::uint64_t seed, std::size_t n_threads, nb::object callbacks) {
            bound.need_labels();
            const Problem& problem = bound.problem;
            const auto& tables = problem.structure->parts().tables;
            require(!bound.scores.has_features() && !problem.allowed,
                    "problems with a kernel have no feature maps and all of their labels");
            require(matrix || pair_matrix, "nodes or pairs must have a kernel matrix");
            require((pair_matrix != nullptr) == (tables.size() > 1), "a kernel matrix of pairs belongs to their table");
            require(!matrix || problem.n_nodes() == n_points(*matrix),
                    "the kernel matrix must have a row for each node");
            require(!pair_matrix || static_cast<std::size_t>(tables[1].offsets.back()) == n_points(*pair_matrix),
                    "the kernel matrix of pairs must have a row for each edge");
            require(scale > 0.0, "scale must be positive");
            const auto blocks = kernel_blocks(problem, scale, matrix != nullptr);
            if (start_weights) {
                require(start_weights->size() == problem.size(), "start_weights must have an entry for each weight");
                std::copy_n(start_weights->data(), problem.size(), blocks->weights().begin());
            }
            Ask ask{{}, {tolerance, most_passes, set_size, n_sweeps, seed}, n_threads, std::move(callbacks)};
            if (matrix) ask.tables.push_back({matrix, exact, start});
            if (pair_matrix) ask.tables.push_back({pair_matrix, pair_exact, pair_start});
            return run(*blocks, ask);
        },
        "matrix"_a.none(), "exact"_a.none(), "pair_matrix"_a.none(), "pair_exact"_a.none(), "problem"_a, "scale"_a,
        "start"_a.noconvert().none(), "pair_start"_a.noconvert().none(), "start_weights"_a.noconvert().none(),
        "tolerance"_a, "most_passes"_a, "set_size"_a, "n_sweeps"_a, "seed"_a, "n_threads"_a, "callbacks"_a.none(),
        "Returns what solve_kernel_table returns.");
}

}  // namespace dualfield::bindings
