// Graphs of one fixed shape as Python passes them: a list of tables, one for each factor.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "dualfield/structures/graphs/factor_graph.hpp"
#include "register.hpp"
#include "structure_arrays.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

using Table = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Answer = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using Statuses = nb::ndarray<nb::numpy, std::uint8_t>;

class BoundFactorGraph {
  public:
    BoundFactorGraph(Codes n_labels, Codes nodes, Offsets offsets, std::size_t most_cells, std::size_t most_table)
        : graph_(checked(n_labels, nodes, offsets), {{nodes.data(), nodes.size()}, {offsets.data(), offsets.size()}},
                 {most_cells, most_table}) {}

    const FactorGraph& graph() const { return graph_; }
    const EliminationPlan& plan() const { return graph_.plan(); }

    // The tables of all factors; shared ones have no axis for examples, which is told by their size.
    FactorBatch batch(const std::vector<Table>& tables, const std::vector<bool>& is_shared, std::size_t n_examples,
                      const std::optional<Input<std::int32_t, 2>>& known, double temperature,
                      std::size_t n_threads) const {
        require(!plan().is_too_large, "the graph is too wide");
        require(tables.size() == plan().factor_cells.size() && is_shared.size() == tables.size(),
                "tables must have an array for each factor");
        FactorBatch found;
        found.n_examples = n_examples;
        found.is_shared = is_shared;
        found.inverse_temperature = 1.0 / temperature;
        found.n_threads = n_threads;
        found.tables.reserve(tables.size());
        for (std::size_t f = 0; f < tables.size(); ++f) {
            const std::size_t n = is_shared[f] ? 1 : n_examples;
            require(tables[f].size() == checked_product(n, plan().factor_cells[f]), "a table has the wrong size");
            found.tables.push_back(tables[f].data());
        }
        if (known) {
            require(known->shape(0) == n_examples && known->shape(1) == graph_.n_nodes(),
                    "evidence has the wrong shape");
            for (std::size_t i = 0; i < known->size(); ++i) {
                const std::int32_t label = known->data()[i];
                require(label < static_cast<std::int32_t>(graph_.n_labels(i % graph_.n_nodes())),
                        "evidence must be labels of its nodes");
            }
            found.known = known->data();
        }
        return found;
    }

  private:
    static std::vector<std::int32_t> checked(const Codes& n_labels, const Codes& nodes, const Offsets& offsets) {
        checked_offsets(offsets);
        require(static_cast<std::size_t>(offsets.data()[offsets.size() - 1]) == nodes.size(),
                "offsets must end with the number of nodes of all scopes");
        for (std::size_t f = 1; f < offsets.size(); ++f)
            require(offsets.data()[f] > offsets.data()[f - 1], "scopes must not be empty");
        for (std::size_t v = 0; v < n_labels.size(); ++v) require(n_labels.data()[v] > 0, "n_labels must be positive");
        for (std::size_t j = 0; j < nodes.size(); ++j)
            require(nodes.data()[j] >= 0 && static_cast<std::size_t>(nodes.data()[j]) < n_labels.size(),
                    "scopes must be of nodes");
        return {n_labels.data(), n_labels.data() + n_labels.size()};
    }

    FactorGraph graph_;
};

// Statuses, and whether scores are so large that sums may overflow.
std::pair<Statuses, bool> told(const FactorReport& report) {
    Output<std::uint8_t> out({report.statuses.size()});
    for (std::size_t i = 0; i < report.statuses.size(); ++i)
        out.data()[i] = static_cast<std::uint8_t>(report.statuses[i]);
    return {out.release(), report.is_huge};
}

template <class Ask>
std::pair<Statuses, bool> unlocked(Ask ask) {
    FactorReport report;
    {
        nb::gil_scoped_release release;
        report = ask();
    }
    return told(report);
}

// The arrays that answers are written to, each [n_examples][cells(f)].
template <class Cells>
std::vector<double*> places(const std::vector<Answer>& answers, std::size_t n, std::size_t n_examples, Cells cells) {
    require(answers.size() == n, "answers must have an array for each factor or node");
    std::vector<double*> found;
    for (std::size_t f = 0; f < n; ++f) {
        require(answers[f].size() == checked_product(n_examples, cells(f)), "an answer has the wrong size");
        found.push_back(answers[f].data());
    }
    return found;
}

}  // namespace

void register_factor_graph(nb::module_& module) {
    using Graph = BoundFactorGraph;
    nb::class_<FactorBatch>(module, "FactorBatch", "Scores of some examples of a factor graph.");
    nb::class_<Graph>(module, "FactorGraph", "Graphs of one fixed shape, exact by elimination.")
        .def(nb::init<Codes, Codes, Offsets, std::size_t, std::size_t>(), "n_labels"_a.noconvert(),
             "nodes"_a.noconvert(), "offsets"_a.noconvert(), "most_cells"_a, "most_table"_a)
        .def_prop_ro("is_too_large", [](const Graph& self) { return self.plan().is_too_large; })
        .def_prop_ro("width", [](const Graph& self) { return self.plan().width; })
        .def_prop_ro("n_cells", [](const Graph& self) { return self.plan().cells; })
        .def_prop_ro(
            "order",
            [](const Graph& self) {
                std::vector<std::int32_t> order;
                for (const EliminationStep& step : self.plan().steps) order.push_back(step.nodes[0]);
                return order;
            },
            "Nodes in the order of elimination.")
        .def_prop_ro(
            "last_table", [](const Graph& self) { return self.plan().steps.back().nodes; },
            "The nodes of the table of the last step.")
        .def("batch", &Graph::batch, "tables"_a.noconvert(), "is_shared"_a, "n_examples"_a,
             "known"_a.noconvert().none(), "temperature"_a, "n_threads"_a, nb::keep_alive<0, 2>(),
             nb::keep_alive<0, 5>())
        .def("log_partition",
             [](const Graph& self, const FactorBatch& batch, nb::ndarray<double, nb::ndim<1>, nb::c_contig> out) {
                 require(out.size() == batch.n_examples, "out must have an entry for each example");
                 return unlocked([&] { return self.graph().log_partition(batch, out.data()); });
             })
        .def("maximum",
             [](const Graph& self, const FactorBatch& batch, nb::ndarray<double, nb::ndim<1>, nb::c_contig> out) {
                 require(out.size() == batch.n_examples, "out must have an entry for each example");
                 return unlocked([&] { return self.graph().maximum(batch, out.data()); });
             })
        .def("entropy",
             [](const Graph& self, const FactorBatch& batch, nb::ndarray<double, nb::ndim<1>, nb::c_contig> out) {
                 require(out.size() == batch.n_examples, "out must have an entry for each example");
                 return unlocked([&] { return self.graph().entropy(batch, out.data()); });
             })
        .def("argmax",
             [](const Graph& self, const FactorBatch& batch, nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig> out) {
                 require(out.size() == checked_product(batch.n_examples, self.graph().n_nodes()),
                         "out must have an entry for each node of each example");
                 return unlocked([&] { return self.graph().argmax(batch, out.data()); });
             })
        .def("sample",
             [](const Graph& self, const FactorBatch& batch, std::uint64_t seed,
                nb::ndarray<std::int32_t, nb::ndim<3>, nb::c_contig> out) {
                 require(out.size() == checked_product(out.shape(0), batch.n_examples, self.graph().n_nodes()),
                         "out must have an entry for each draw, example and node");
                 return unlocked([&] { return self.graph().sample(batch, out.shape(0), seed, out.data()); });
             })
        .def(
            "k_best",
            [](const Graph& self, const FactorBatch& batch, nb::ndarray<std::int32_t, nb::ndim<3>, nb::c_contig> labels,
               nb::ndarray<double, nb::ndim<2>, nb::c_contig> scores) {
                const std::size_t k = labels.shape(0), n = self.graph().n_nodes();
                require(labels.size() == checked_product(k, batch.n_examples, n) &&
                            scores.shape(0) == batch.n_examples && scores.shape(1) == k,
                        "labels must have an entry for each rank, example and node, scores for each example and rank");
                const std::vector<std::size_t>& cells = self.plan().factor_cells;
                require(cells.size() >= n, "the last factors must be those of single nodes");
                for (std::size_t t = 0; t < n; ++t)
                    require(cells[cells.size() - n + t] == self.graph().n_labels(t),
                            "the last factors must be those of single nodes");
                return unlocked([&] { return self.graph().k_best(batch, k, labels.data(), scores.data()); });
            })
        .def("marginals",
             [](const Graph& self, const FactorBatch& batch, const std::vector<Answer>& answers) {
                 const std::vector<std::size_t>& cells = self.plan().factor_cells;
                 const auto out =
                     places(answers, cells.size(), batch.n_examples, [&](std::size_t f) { return cells[f]; });
                 return unlocked([&] { return self.graph().marginals(batch, out.data(), nullptr); });
             })
        .def("node_marginals",
             [](const Graph& self, const FactorBatch& batch, const std::vector<Answer>& answers) {
                 const auto out = places(answers, self.graph().n_nodes(), batch.n_examples,
                                         [&](std::size_t t) { return self.graph().n_labels(t); });
                 return unlocked([&] { return self.graph().marginals(batch, nullptr, out.data()); });
             })
        .def("max_marginals", [](const Graph& self, const FactorBatch& batch, const std::vector<Answer>& answers) {
            const auto out = places(answers, self.graph().n_nodes(), batch.n_examples,
                                    [&](std::size_t t) { return self.graph().n_labels(t); });
            return unlocked([&] { return self.graph().max_marginals(batch, out.data()); });
        });
}

}  // namespace dualfield::bindings
