// Trees as Python passes them.
#include <nanobind/stl/optional.h>

#include "dualfield/structures/graphs/tree.hpp"
#include "register.hpp"
#include "structure_arrays.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

using MaybeCodes = std::optional<Codes>;
using MaybeVector = std::optional<Input<double, 1>>;

class BoundTree final : public BoundStructure {
  public:
    BoundTree(std::size_t n_labels, Offsets offsets, Codes parents, MaybeCodes types, std::size_t n_types,
              bool with_edges, bool with_roots, MaybeVector limits, MaybeVector root_limits)
        : offsets_(checked_offsets(offsets)),
          parents_(parents),
          types_(types),
          limits_(limits),
          root_limits_(root_limits),
          structure_(checked(n_labels, n_types), {offsets_.data(), offsets_.size()}, parents_.data(),
                     {n_types, with_edges, with_roots, data_or_null(types_), data_or_null(limits_),
                      data_or_null(root_limits_)}) {}
    const Structure& structure() const override { return structure_; }

  private:
    std::size_t checked(std::size_t n_labels, std::size_t n_types) const {
        const auto n_nodes = static_cast<std::size_t>(offsets_.data()[offsets_.size() - 1]);
        require(n_labels > 0 && n_types > 0, "n_labels and n_types must be positive");
        require(parents_.size() == n_nodes, "parents must have one entry for each node");
        require(!types_ || types_->size() == n_nodes, "types must have one entry for each node");
        for (std::size_t t = 0; types_ && t < n_nodes; ++t)
            require(types_->data()[t] >= 0 && static_cast<std::size_t>(types_->data()[t]) < n_types,
                    "types must be in [0, n_types)");
        require(!limits_ || limits_->size() == checked_product(n_types, n_labels, n_labels),
                "limits must have an entry for each type and pair of labels");
        require(!root_limits_ || root_limits_->size() == n_labels, "root_limits must have shape (n_labels,)");
        return n_labels;
    }

    Offsets offsets_;
    Codes parents_;
    MaybeCodes types_;
    MaybeVector limits_, root_limits_;
    TreeStructure structure_;
};

}  // namespace

void register_tree(nb::module_& module) {
    nb::class_<BoundTree, BoundStructure>(module, "TreeStructure", "Rooted trees.")
        .def(nb::init<std::size_t, Offsets, Codes, MaybeCodes, std::size_t, bool, bool, MaybeVector, MaybeVector>(),
             "n_labels"_a, "offsets"_a.noconvert(), "parents"_a.noconvert(), "types"_a.noconvert().none(), "n_types"_a,
             "with_edges"_a, "with_roots"_a, "limits"_a.noconvert().none(), "root_limits"_a.noconvert().none());
}

}  // namespace dualfield::bindings
