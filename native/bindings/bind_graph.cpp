// Graphs as Python passes them: exact ones, relaxations, and hypergraphs.
#include <nanobind/stl/optional.h>

#include "dualfield/structures/graphs/graph.hpp"
#include "dualfield/structures/graphs/relaxed_graph.hpp"
#include "register.hpp"
#include "structure_arrays.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

using MaybeCodes = std::optional<Codes>;
using MaybeVector = std::optional<Input<double, 1>>;
using Pairs = Input<std::int32_t, 2>;

// The largest of what a member function says of the examples.
template <class OfGraphs>
std::size_t largest(const OfGraphs& structure, std::size_t (OfGraphs::*question)(std::size_t) const) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < structure.n_examples(); ++i) found = std::max(found, (structure.*question)(i));
    return found;
}

// How: what the structure needs beside the graphs.
template <class OfGraphs, class How>
class BoundGraph final : public BoundStructure {
  public:
    BoundGraph(std::size_t n_labels, Offsets offsets, Pairs edges, Offsets edge_offsets, MaybeCodes types,
               std::size_t n_types, bool with_edges, MaybeVector limits, const How& how)
        : offsets_(checked_offsets(offsets)),
          edge_offsets_(checked_offsets(edge_offsets)),
          edges_(edges),
          types_(types),
          limits_(limits),
          structure_(checked(n_labels, n_types), {offsets_.data(), offsets_.size()}, edges_.data(),
                     {edge_offsets_.data(), edge_offsets_.size()},
                     {n_types, with_edges, data_or_null(types_), data_or_null(limits_)}, how) {}
    const Structure& structure() const override { return structure_; }
    std::size_t most(std::size_t (OfGraphs::*question)(std::size_t) const) const {
        return largest(structure_, question);
    }

  private:
    std::size_t checked(std::size_t n_labels, std::size_t n_types) const {
        const auto n_edges = static_cast<std::size_t>(edge_offsets_.data()[edge_offsets_.size() - 1]);
        require(n_labels > 0 && n_types > 0, "n_labels and n_types must be positive");
        require(edge_offsets_.size() == offsets_.size(), "edge_offsets must have an entry for each example");
        require(edges_.shape(0) == n_edges && edges_.shape(1) == 2, "edges must have shape (n_edges, 2)");
        require(!types_ || types_->size() == n_edges, "types must have one entry for each edge");
        for (std::size_t e = 0; types_ && e < n_edges; ++e)
            require(types_->data()[e] >= 0 && static_cast<std::size_t>(types_->data()[e]) < n_types,
                    "types must be in [0, n_types)");
        require(!limits_ || limits_->size() == checked_product(n_types, n_labels, n_labels),
                "limits must have an entry for each type and pair of labels");
        return n_labels;
    }

    Offsets offsets_, edge_offsets_;
    Pairs edges_;
    MaybeCodes types_;
    MaybeVector limits_;
    OfGraphs structure_;
};

using BoundExact = BoundGraph<GraphStructure, std::size_t>;
using BoundRelaxed = BoundGraph<RelaxedGraphStructure, RelaxedGraphStructure::Accuracy>;

// Edges of any number of nodes.
class BoundHypergraph final : public BoundStructure {
  public:
    BoundHypergraph(std::size_t n_labels, Offsets offsets, Codes nodes, Offsets scopes, Offsets edge_offsets,
                    Codes types, Codes sizes, bool with_edges, std::size_t budget)
        : offsets_(checked_offsets(offsets)),
          scopes_(checked_offsets(scopes)),
          edge_offsets_(checked_offsets(edge_offsets)),
          nodes_(nodes),
          types_(types),
          sizes_(sizes),
          structure_(
              checked(n_labels), {offsets_.data(), offsets_.size()}, nodes_.data(),
              {edge_offsets_.data(), edge_offsets_.size()},
              {sizes_.size(), with_edges, types_.data(), nullptr, scopes_.data(), {sizes_.data(), sizes_.size()}},
              budget) {}
    const Structure& structure() const override { return structure_; }
    std::size_t width() const { return largest(structure_, &GraphStructure::width); }

  private:
    std::size_t checked(std::size_t n_labels) const {
        const auto n_edges = static_cast<std::size_t>(edge_offsets_.data()[edge_offsets_.size() - 1]);
        require(n_labels > 0, "n_labels must be positive");
        require(edge_offsets_.size() == offsets_.size(), "edge_offsets must have an entry for each example");
        require(scopes_.size() == n_edges + 1, "scopes must have an entry for each edge, and one behind them");
        require(nodes_.size() == static_cast<std::size_t>(scopes_.data()[n_edges]),
                "nodes must have one entry for each node of each edge");
        require(types_.size() == n_edges, "types must have one entry for each edge");
        for (std::size_t type = 0; type < sizes_.size(); ++type)
            require(sizes_.data()[type] >= 1, "sizes must be positive");
        for (std::size_t e = 0; e < n_edges; ++e) {
            const std::int32_t type = types_.data()[e];
            require(type >= 0 && static_cast<std::size_t>(type) < sizes_.size(), "types must be in [0, n_types)");
            require(scopes_.data()[e + 1] - scopes_.data()[e] == sizes_.data()[type],
                    "edges must have as many nodes as their type");
        }
        return n_labels;
    }

    Offsets offsets_, scopes_, edge_offsets_;
    Codes nodes_, types_, sizes_;
    GraphStructure structure_;
};

}  // namespace

void register_graph(nb::module_& module) {
    nb::exception<TooWide>(module, "TooWide", PyExc_ValueError);
    nb::class_<BoundExact, BoundStructure>(module, "GraphStructure", "Graphs, exact by elimination.")
        .def(nb::init<std::size_t, Offsets, Pairs, Offsets, MaybeCodes, std::size_t, bool, MaybeVector, std::size_t>(),
             "n_labels"_a, "offsets"_a.noconvert(), "edges"_a.noconvert(), "edge_offsets"_a.noconvert(),
             "types"_a.noconvert().none(), "n_types"_a, "with_edges"_a, "limits"_a.noconvert().none(), "budget"_a)
        .def_prop_ro(
            "width", [](const BoundExact& self) { return self.most(&GraphStructure::width); },
            "The longest separator of all examples.");
    nb::class_<BoundRelaxed, BoundStructure>(module, "RelaxedGraphStructure", "Graphs, by tree-reweighted bounds.")
        .def(
            "__init__",
            [](BoundRelaxed* self, std::size_t n_labels, Offsets offsets, Pairs edges, Offsets edge_offsets,
               MaybeCodes types, std::size_t n_types, bool with_edges, MaybeVector limits, double tolerance,
               std::size_t most_sweeps) {
                new (self) BoundRelaxed(n_labels, offsets, edges, edge_offsets, types, n_types, with_edges, limits,
                                        {tolerance, most_sweeps});
            },
            "n_labels"_a, "offsets"_a.noconvert(), "edges"_a.noconvert(), "edge_offsets"_a.noconvert(),
            "types"_a.noconvert().none(), "n_types"_a, "with_edges"_a, "limits"_a.noconvert().none(),
            "tolerance"_a = 1e-7, "most_sweeps"_a = 200)
        .def_prop_ro(
            "n_forests", [](const BoundRelaxed& self) { return self.most(&RelaxedGraphStructure::n_forests); },
            "The largest number of forests of an example.");
    nb::class_<BoundHypergraph, BoundStructure>(module, "HypergraphStructure", "Hypergraphs, exact by elimination.")
        .def(nb::init<std::size_t, Offsets, Codes, Offsets, Offsets, Codes, Codes, bool, std::size_t>(), "n_labels"_a,
             "offsets"_a.noconvert(), "nodes"_a.noconvert(), "scopes"_a.noconvert(), "edge_offsets"_a.noconvert(),
             "types"_a.noconvert(), "sizes"_a.noconvert(), "with_edges"_a, "budget"_a)
        .def_prop_ro("width", &BoundHypergraph::width, "The longest separator of all examples.");
}

}  // namespace dualfield::bindings
