// Problems with linear scores: their features, objective and solvers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <string>

#include "dualfield/solvers/dual/block_dual.hpp"
#include "dualfield/solvers/dual/flow_swap.hpp"
#include "dualfield/solvers/dual/local_blocks.hpp"
#include "dualfield/solvers/dual/path_blocks.hpp"
#include "dualfield/solvers/primal/online.hpp"
#include "problem_arrays.hpp"
#include "register.hpp"
#include "run_solver.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

class BoundObjective {
  public:
    BoundObjective(const BoundProblem& problem, std::size_t n_threads)
        : problem_(checked(problem)), objective_(problem.problem, n_threads) {}

    double loss(const Numbers& w) {
        const double* point = problem_.checked(w);
        const nb::gil_scoped_release unlocked;
        return objective_.loss(point);
    }
    auto losses(const Numbers& w) {
        const double* point = problem_.checked(w);
        Output<double> values({problem_.problem.n_examples()});
        {
            const nb::gil_scoped_release unlocked;
            objective_.losses(point, values.data());
        }
        return values.release();
    }
    auto evaluate(const Numbers& w) {
        const double* point = problem_.checked(w);
        Output<double> gradient({w.size()});
        double value;
        Objective::Doubt doubt;
        {
            const nb::gil_scoped_release unlocked;
            value = objective_.loss_and_gradient(point, gradient.data(), &doubt);
        }
        return std::make_tuple(value, gradient.release(), doubt.magnitude, doubt.slack);
    }
    auto hessian_product(const Numbers& w, const Numbers& v) {
        const double *point = problem_.checked(w), *direction = problem_.checked(v);
        Output<double> product({w.size()});
        {
            const nb::gil_scoped_release unlocked;
            require_finite(objective_.hessian_product(point, direction, product.data()));
        }
        return product.release();
    }
    auto hessian(const std::vector<Numbers>& points, const Input<std::int64_t, 1>& places) {
        std::vector<const double*> all;
        for (const Numbers& w : points) all.push_back(problem_.checked(w));
        require(!all.empty(), "there must be a point");
        const std::span<const std::int64_t> wanted(places.data(), places.size());
        for (std::size_t j = 0; j < wanted.size(); ++j)
            require(wanted[j] >= 0 && wanted[j] < static_cast<std::int64_t>(points[0].size()) &&
                        (j == 0 || wanted[j] > wanted[j - 1]),
                    "places must rise within the parameters");
        Output<double> found({wanted.size(), wanted.size()});
        {
            const nb::gil_scoped_release unlocked;
            require_finite(objective_.hessian(all, wanted, found.data()));
        }
        return found.release();
    }

  private:
    static const BoundProblem& checked(const BoundProblem& problem) {
        problem.need_features();
        problem.need_labels();
        return problem;
    }
    static void require_finite(bool is_finite) {
        require(is_finite, "The scores are not finite at these parameters: there are no second derivatives.");
    }
    const BoundProblem& problem_;
    Objective objective_;
};

template <class Solve>
nb::object run(const BoundProblem& problem, const MaybeNumbers& start, nb::object caller, Solve solve) {
    problem.need_features();
    problem.need_labels();
    const double* begin = start ? problem.checked(*start) : nullptr;
    return run_solver(std::move(caller), [&](const Callbacks& callbacks) { return solve(begin, callbacks); });
}

void register_solvers(nb::module_& module) {
    module.def(
        "solve_block_dual",
        [](const BoundProblem& problem, MaybeNumbers start, double tolerance, double most_passes, std::uint64_t seed,
           std::size_t n_threads, double patience, double l1_ratio, nb::object callbacks) {
            const BlockDualSettings settings{tolerance, most_passes, seed, n_threads, patience, l1_ratio};
            return run(problem, start, std::move(callbacks), [&](const double* begin, const Callbacks& native) {
                return solve_block_dual(problem.problem, begin, settings, native);
            });
        },
        "problem"_a, "start"_a.none(), "tolerance"_a, "most_passes"_a, "seed"_a, "n_threads"_a, "patience"_a,
        "l1_ratio"_a, "callbacks"_a.none(), "Returns parameters, objective, gap, outcome, number of epochs, trace.");
    module.def(
        "solve_sgd",
        [](const BoundProblem& problem, MaybeNumbers start, std::size_t n_epochs, double rate, bool average,
           std::uint64_t seed, std::size_t n_seen, nb::object callbacks) {
            const SgdSettings settings{n_epochs, rate, average, seed, n_seen};
            return run(problem, start, std::move(callbacks), [&](const double* begin, const Callbacks& native) {
                return solve_sgd(problem.problem, begin, settings, native);
            });
        },
        "problem"_a, "start"_a.none(), "n_epochs"_a, "rate"_a, "average"_a, "seed"_a, "n_seen"_a, "callbacks"_a.none(),
        "Returns what solve_block_dual returns; objective and gap are not computed.");
    module.def(
        "solve_perceptron",
        [](const BoundProblem& problem, MaybeNumbers start, std::size_t n_epochs, bool average, std::uint64_t seed,
           nb::object callbacks) {
            const PerceptronSettings settings{n_epochs, average, seed};
            return run(problem, start, std::move(callbacks), [&](const double* begin, const Callbacks& native) {
                return solve_perceptron(problem.problem, begin, settings, native);
            });
        },
        "problem"_a, "start"_a.none(), "n_epochs"_a, "average"_a, "seed"_a, "callbacks"_a.none(),
        "Returns what solve_block_dual returns; objective and gap are not computed.");
    module.def(
        "solve_passive_aggressive",
        [](const BoundProblem& problem, MaybeNumbers start, std::size_t n_epochs, double epsilon, int type, double c,
           bool error_sensitive, bool average, std::uint64_t seed, nb::object callbacks) {
            const PassiveAggressiveSettings settings{{n_epochs, epsilon, seed}, type, c, error_sensitive, average};
            return run(problem, start, std::move(callbacks), [&](const double* begin, const Callbacks& native) {
                return solve_passive_aggressive(problem.problem, begin, settings, native);
            });
        },
        "problem"_a, "start"_a.none(), "n_epochs"_a, "epsilon"_a, "type"_a, "c"_a, "error_sensitive"_a, "average"_a,
        "seed"_a, "callbacks"_a.none(), "Returns what solve_perceptron returns.");
    module.def(
        "solve_arow",
        [](const BoundProblem& problem, MaybeNumbers start, std::size_t n_epochs, double epsilon, double variance,
           double gamma, std::uint64_t seed, nb::object callbacks) {
            const ArowSettings settings{{n_epochs, epsilon, seed}, variance, gamma};
            return run(problem, start, std::move(callbacks), [&](const double* begin, const Callbacks& native) {
                return solve_arow(problem.problem, begin, settings, native);
            });
        },
        "problem"_a, "start"_a.none(), "n_epochs"_a, "epsilon"_a, "variance"_a, "gamma"_a, "seed"_a,
        "callbacks"_a.none(), "Returns what solve_perceptron returns.");
    module.def(
        "solve_flow_swap",
        [](const BoundProblem& problem, MaybeNumbers start, std::optional<StateDict> flow, double tolerance,
           double most_passes, std::uint64_t seed, std::size_t n_threads, nb::object callbacks) {
            const FlowSwapSettings settings{tolerance, most_passes, seed, n_threads};
            SolverState begin_flow, end_flow;
            if (flow) begin_flow = read_state(*flow);
            nb::object result =
                run(problem, start, std::move(callbacks), [&](const double* begin, const Callbacks& native) {
                    return solve_flow_swap(problem.problem, begin, flow ? &begin_flow : nullptr, settings, native,
                                           &end_flow);
                });
            return std::make_pair(result, as_dict(end_flow));
        },
        "problem"_a, "start"_a.none(), "flow"_a.none(), "tolerance"_a, "most_passes"_a, "seed"_a, "n_threads"_a,
        "callbacks"_a.none(), "Returns what solve_block_dual returns, and the flow as a dict of arrays.");
    module.def(
        "solve_path_blocks",
        [](const BoundProblem& problem, MaybeNumbers start, double tolerance, double most_passes, std::uint64_t seed,
           std::size_t n_threads, nb::object callbacks) {
            const PathBlocksSettings settings{tolerance, most_passes, seed, n_threads};
            return run(problem, start, std::move(callbacks), [&](const double* begin, const Callbacks& native) {
                return solve_path_blocks(problem.problem, begin, settings, native);
            });
        },
        "problem"_a, "start"_a.none(), "tolerance"_a, "most_passes"_a, "seed"_a, "n_threads"_a, "callbacks"_a.none(),
        "Returns what solve_block_dual returns.");
    module.def(
        "solve_local_blocks",
        [](const BoundProblem& problem, MaybeNumbers start, double tolerance, double most_passes, std::uint64_t seed,
           std::size_t n_threads, nb::object callbacks) {
            const LocalBlocksSettings settings{tolerance, most_passes, seed, n_threads};
            return run(problem, start, std::move(callbacks), [&](const double* begin, const Callbacks& native) {
                return solve_local_blocks(problem.problem, begin, settings, native);
            });
        },
        "problem"_a, "start"_a.none(), "tolerance"_a, "most_passes"_a, "seed"_a, "n_threads"_a, "callbacks"_a.none(),
        "Returns what solve_block_dual returns.");
    module.def(
        "local_blocks_bytes", [](const BoundProblem& problem) { return local_blocks_bytes(problem.problem); },
        "problem"_a);
    module.def(
        "block_dual_bytes",
        [](const BoundProblem& problem, double tolerance, double l1_ratio) {
            return block_dual_bytes(problem.problem, tolerance, l1_ratio);
        },
        "problem"_a, "tolerance"_a, "l1_ratio"_a);
}

auto observe(const BoundRows& rows, Input<std::int32_t, 1> labels, std::size_t n_outputs, std::size_t least) {
    require(labels.size() == rows.n_rows, "labels must have one entry for each row");
    require(n_outputs <= std::numeric_limits<std::int32_t>::max(), "n_outputs must fit 32 bits");
    for (std::size_t r = 0; r < labels.size(); ++r)
        require(labels.data()[r] < static_cast<std::int32_t>(n_outputs), "labels must be below n_outputs");
    ObservedFeatures features;
    {
        const nb::gil_scoped_release unlocked;
        features = observe_features(rows.rows, {labels.data(), labels.size()}, n_outputs, least);
    }
    Output<std::int64_t> indptr({features.indptr.size()});
    Output<std::int32_t> outputs({features.outputs.size()});
    std::copy(features.indptr.begin(), features.indptr.end(), indptr.data());
    std::copy(features.outputs.begin(), features.outputs.end(), outputs.data());
    return std::make_pair(indptr.release(), outputs.release());
}

auto tag_all(const BoundProblem& problem, const Numbers& w, std::size_t n_threads, bool with_cost) {
    const double* point = problem.checked(w);
    if (with_cost) problem.need_labels();
    Output<std::int32_t> labels({problem.bound.n_places()});
    {
        const nb::gil_scoped_release unlocked;
        tag(problem.problem, point, n_threads, with_cost, labels.data());
    }
    return labels.release();
}

auto score_all(const BoundProblem& problem, const Numbers& w, std::size_t n_threads) {
    const double* point = problem.checked(w);
    const auto& tables = problem.problem.structure->parts().tables;
    const auto n_rows = [&](std::size_t g) {
        return g < tables.size() ? static_cast<std::size_t>(tables[g].offsets.back()) : 0;
    };
    Output<double> node({n_rows(0), tables[0].width}), edges({n_rows(1), tables.size() > 1 ? tables[1].width : 0});
    {
        const nb::gil_scoped_release unlocked;
        score_own(problem.problem, point, n_threads, {node.data(), tables.size() > 1 ? edges.data() : nullptr});
    }
    return std::make_pair(node.release(), edges.release());
}

}  // namespace

void register_problems(nb::module_& module) {
    nb::exception<StateError>(module, "StateError", PyExc_ValueError);
    nb::class_<BoundRows>(module, "FeatureRows", "A matrix of features with a row for each node.")
        .def(nb::init<std::optional<Input<std::int64_t, 1>>, std::optional<Input<std::int32_t, 1>>, MaybeNumbers,
                      MaybeMatrix, std::size_t>(),
             "indptr"_a.noconvert().none(), "indices"_a.noconvert().none(), "values"_a.noconvert().none(),
             "dense"_a.noconvert().none(), "n_columns"_a);
    module.def("observe_features", &observe, "rows"_a, "labels"_a.noconvert(), "n_outputs"_a, "least"_a,
               "Outputs that occur with each column at least so often: indptr and outputs.");
    nb::class_<LinearMap>(module, "LinearMap", "Which columns score which outputs, and where their weights are.")
        .def(
            "__init__",
            [](LinearMap* self, std::size_t n_outputs, Input<std::int64_t, 1> indptr, Input<std::int32_t, 1> outputs) {
                new (self) LinearMap(n_outputs, {indptr.data(), indptr.size()}, {outputs.data(), outputs.size()});
            },
            "n_outputs"_a, "indptr"_a.noconvert(), "outputs"_a.noconvert())
        .def_prop_ro("size", &LinearMap::size, "Length of a vector of weights.")
        .def_prop_ro("n_features", &LinearMap::n_features)
        .def_prop_ro("n_columns", &LinearMap::n_columns)
        .def(
            "feature_places",
            [](const LinearMap& self) {
                Output<std::int64_t> places({self.n_features()});
                self.feature_places(places.data());
                return places.release();
            },
            "Where each feature is in a vector of weights.");
    nb::class_<BoundProblem>(module, "Problem", "Examples of a structure, the map that scores them, and their labels.")
        .def(
            nb::init<const BoundStructure&, const LinearMap*, const BoundRows*, const LinearMap*, const BoundRows*,
                     Numbers, std::optional<Codes>, MaybeNumbers, MaybeMatrix, std::optional<Input<bool, 2>>, double>(),
            "structure"_a, "node"_a.none(), "rows"_a.none(), "edge"_a.none(), "edge_rows"_a.none(),
            "shared_mask"_a.noconvert(), "labels"_a.noconvert().none(), "weights"_a.noconvert().none(),
            "cost"_a.noconvert().none(), "allowed"_a.noconvert().none(), "temperature"_a, nb::keep_alive<1, 2>(),
            nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>())
        .def_prop_ro("temperature", [](const BoundProblem& self) { return self.problem.temperature; })
        .def_prop_ro("n_examples", [](const BoundProblem& self) { return self.problem.n_examples(); })
        .def_prop_ro("size", [](const BoundProblem& self) { return self.problem.size(); });
    nb::class_<BoundObjective>(module, "Objective", "Losses of all examples.")
        .def(nb::init<const BoundProblem&, std::size_t>(), "problem"_a, "n_threads"_a, nb::keep_alive<1, 2>())
        .def("loss", &BoundObjective::loss, "w"_a.noconvert())
        .def("losses", &BoundObjective::losses, "w"_a.noconvert(), "Of each example, without its weight.")
        .def("evaluate", &BoundObjective::evaluate, "w"_a.noconvert(),
             "Returns the loss, its gradient, the size of what was subtracted from each other, and the slack.")
        .def("hessian_product", &BoundObjective::hessian_product, "w"_a.noconvert(), "v"_a.noconvert(),
             "The second derivatives at w, times v.")
        .def("hessian", &BoundObjective::hessian, "points"_a, "places"_a.noconvert(),
             "The second derivatives by the parameters at some places, as the mean over some points.");
    module.def("tag", &tag_all, "problem"_a, "w"_a.noconvert(), "n_threads"_a, "with_cost"_a = false,
               "Best labels of all nodes, with the cost of wrong ones if it is asked for.");
    module.def("score_own", &score_all, "problem"_a, "w"_a.noconvert(), "n_threads"_a,
               "Scores of the parts of nodes, and of edges where they have features.");
    nb::class_<BoundMoment>(module, "Moment", "The end of a pass, valid while its callback runs.")
        .def("progress", &BoundMoment::progress, "Objective, dual, gap, passes and seconds.")
        .def("parameters", &BoundMoment::parameters)
        .def("state", &BoundMoment::state, "Arrays by name with which the solver can go on later.");
    register_solvers(module);
}

}  // namespace dualfield::bindings
