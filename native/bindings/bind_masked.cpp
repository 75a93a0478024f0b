// Structures some of whose labels are forbidden, as Python passes them.
#include "dualfield/structures/masked.hpp"
#include "register.hpp"
#include "structure_arrays.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

using Flags = Input<std::uint8_t, 2>;

class BoundMasked final : public BoundStructure {
  public:
    BoundMasked(const BoundStructure& inner, Flags sets, Codes set_of)
        : sets_(checked(inner, sets, set_of)),
          set_of_(set_of),
          structure_(inner.structure(), sets_.data(), set_of_.data()) {}
    const Structure& structure() const override { return structure_; }

  private:
    static const Flags& checked(const BoundStructure& inner, const Flags& sets, const Codes& set_of) {
        require(sets.shape(1) == inner.structure().n_labels(), "sets must have a column for each label");
        require(set_of.size() == inner.n_places(), "set_of must have one entry for each node");
        for (std::size_t t = 0; t < set_of.size(); ++t)
            require(set_of.data()[t] >= 0 && static_cast<std::size_t>(set_of.data()[t]) < sets.shape(0),
                    "set_of must have rows of sets");
        return sets;
    }

    Flags sets_;
    Codes set_of_;
    MaskedStructure structure_;
};

}  // namespace

void register_masked(nb::module_& module) {
    nb::class_<BoundMasked, BoundStructure>(module, "MaskedStructure", "Nodes that have label sets.")
        .def(nb::init<const BoundStructure&, Flags, Codes>(), "inner"_a, "sets"_a.noconvert(), "set_of"_a.noconvert(),
             nb::keep_alive<1, 2>());
}

}  // namespace dualfield::bindings
