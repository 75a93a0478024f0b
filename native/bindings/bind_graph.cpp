// Graphs as Python passes them.
#include <nanobind/stl/optional.h>

#include "dualfield/structures/graph.hpp"
#include "register.hpp"
#include "structure_arrays.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

using MaybeCodes = std::optional<Codes>;
using MaybeVector = std::optional<Input<double, 1>>;
using Pairs = Input<std::int32_t, 2>;

class BoundGraph final : public BoundStructure {
  public:
    BoundGraph(std::size_t n_labels, Offsets offsets, Pairs edges, Offsets edge_offsets, MaybeCodes types,
               std::size_t n_types, bool with_edges, MaybeVector limits, std::size_t budget)
        : offsets_(checked_offsets(offsets)),
          edge_offsets_(checked_offsets(edge_offsets)),
          edges_(edges),
          types_(types),
          limits_(limits),
          structure_(checked(n_labels, n_types), {offsets_.data(), offsets_.size()}, edges_.data(),
                     {edge_offsets_.data(), edge_offsets_.size()},
                     {n_types, with_edges, data_or_null(types_), data_or_null(limits_), budget}) {}
    const Structure& structure() const override { return structure_; }
    std::size_t width() const {
        std::size_t widest = 0;
        for (std::size_t i = 0; i < structure_.n_examples(); ++i) widest = std::max(widest, structure_.width(i));
        return widest;
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
    GraphStructure structure_;
};

}  // namespace

void register_graph(nb::module_& module) {
    nb::class_<BoundGraph, BoundStructure>(module, "GraphStructure", "Graphs.")
        .def(nb::init<std::size_t, Offsets, Pairs, Offsets, MaybeCodes, std::size_t, bool, MaybeVector, std::size_t>(),
             "n_labels"_a, "offsets"_a.noconvert(), "edges"_a.noconvert(), "edge_offsets"_a.noconvert(),
             "types"_a.noconvert().none(), "n_types"_a, "with_edges"_a, "limits"_a.noconvert().none(), "budget"_a)
        .def_prop_ro("width", &BoundGraph::width, "The longest separator of all examples.");
}

}  // namespace dualfield::bindings
