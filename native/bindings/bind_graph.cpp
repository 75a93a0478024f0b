// Graphs as Python passes them: exact ones, and relaxations.
#include <nanobind/stl/optional.h>

#include "dualfield/structures/graph.hpp"
#include "dualfield/structures/relaxed_graph.hpp"
#include "register.hpp"
#include "structure_arrays.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

using MaybeCodes = std::optional<Codes>;
using MaybeVector = std::optional<Input<double, 1>>;
using Pairs = Input<std::int32_t, 2>;

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
    // The largest of what a member function says of the examples.
    template <class Question>
    std::size_t most(Question question) const {
        std::size_t largest = 0;
        for (std::size_t i = 0; i < structure_.n_examples(); ++i)
            largest = std::max(largest, (structure_.*question)(i));
        return largest;
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
}

}  // namespace dualfield::bindings
