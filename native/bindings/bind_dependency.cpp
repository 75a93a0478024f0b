// Dependency trees as Python passes them.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "dualfield/structures/parse_trees/dependency.hpp"
#include "register.hpp"
#include "structure_arrays.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

class BoundDependency final : public BoundStructure {
  public:
    BoundDependency(std::size_t n_labels, Offsets offsets, bool is_single)
        : offsets_(checked_offsets(offsets)),
          structure_(checked(n_labels), {offsets_.data(), offsets_.size()}, is_single) {}
    const Structure& structure() const override { return structure_; }

  private:
    std::size_t checked(std::size_t n_labels) const {
        require(n_labels > 1, "n_labels must be at least 2");
        for (std::size_t i = 1; i < offsets_.size(); ++i) {
            const auto n_arcs = static_cast<std::size_t>(offsets_.data()[i] - offsets_.data()[i - 1]);
            const std::size_t n = DependencyStructure::n_words(n_arcs);
            require(n * n == n_arcs, "offsets must leave a square number of arcs to each sentence");
        }
        return n_labels;
    }

    Offsets offsets_;
    DependencyStructure structure_;
};

// Why the heads of each sentence are no projective tree, empty if they are, and which are trees whose arcs cross.
std::pair<std::vector<std::string>, std::vector<bool>> refusals(const Codes& heads, const Offsets& offsets,
                                                                bool is_single) {
    checked_offsets(offsets);
    require(heads.size() == static_cast<std::size_t>(offsets.data()[offsets.size() - 1]),
            "heads must have one entry for each word");
    std::vector<std::string> reasons;
    std::vector<bool> crossing;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        const auto first = static_cast<std::size_t>(offsets.data()[i]);
        const auto n = static_cast<std::size_t>(offsets.data()[i + 1]) - first;
        bool crosses = false;
        reasons.push_back(DependencyStructure::refusal_of_heads({heads.data() + first, n}, is_single, &crosses));
        crossing.push_back(crosses);
    }
    return {std::move(reasons), std::move(crossing)};
}

}  // namespace

void register_dependency(nb::module_& module) {
    nb::class_<BoundDependency, BoundStructure>(module, "DependencyStructure", "Projective dependency trees.")
        .def(nb::init<std::size_t, Offsets, bool>(), "n_labels"_a, "offsets"_a.noconvert(), "is_single"_a);
    module.def("head_refusals", &refusals, "heads"_a.noconvert(), "offsets"_a.noconvert(), "is_single"_a,
               "Why the heads of sentences are no projective trees.");
}

}  // namespace dualfield::bindings
