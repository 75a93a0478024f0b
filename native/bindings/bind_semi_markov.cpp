// Sequences cut into segments as Python passes them.
#include <nanobind/stl/optional.h>

#include "dualfield/structures/semi_markov.hpp"
#include "register.hpp"
#include "structure_arrays.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

using MaybeVector = std::optional<Input<double, 1>>;

class BoundSemiMarkov final : public BoundStructure {
  public:
    BoundSemiMarkov(std::size_t n_labels, Offsets offsets, Codes roles, Codes longest, std::size_t max_length,
                    MaybeVector limits, bool with_edges, bool with_ends)
        : offsets_(checked_offsets(offsets)),
          roles_(roles),
          longest_(longest),
          limits_(limits),
          structure_(checked(n_labels, max_length), {offsets_.data(), offsets_.size()},
                     {longest_.size(), max_length, roles_.data(), longest_.data(), data_or_null(limits_), with_edges,
                      with_ends}) {}
    const Structure& structure() const override { return structure_; }

  private:
    std::size_t checked(std::size_t n_labels, std::size_t max_length) const {
        const std::size_t n_kinds = longest_.size();
        require(n_labels > 0 && n_kinds > 0 && max_length > 0, "n_labels, longest and max_length must be positive");
        require(roles_.size() == SemiMarkovStructure::kRoles * n_kinds, "roles must have four labels for each kind");
        for (std::size_t j = 0; j < roles_.size(); ++j)
            require(roles_.data()[j] >= -1 && roles_.data()[j] < static_cast<std::int64_t>(n_labels),
                    "roles must be labels, or -1");
        for (std::size_t j = 0; j < n_kinds; ++j) {
            require(longest_.data()[j] > 0 && static_cast<std::size_t>(longest_.data()[j]) <= max_length,
                    "longest must be in [1, max_length]");
            require(roles_.data()[SemiMarkovStructure::kRoles * j + SemiMarkovStructure::kSingle] >= 0 ||
                        longest_.data()[j] > 1,
                    "a kind must have a segment");
        }
        require(!limits_ || limits_->size() == checked_product(n_kinds, n_kinds),
                "limits must have an entry for each pair of kinds");
        return n_labels;
    }

    Offsets offsets_;
    Codes roles_, longest_;
    MaybeVector limits_;
    SemiMarkovStructure structure_;
};

}  // namespace

void register_semi_markov(nb::module_& module) {
    nb::class_<BoundSemiMarkov, BoundStructure>(module, "SemiMarkovStructure", "Sequences cut into segments.")
        .def(nb::init<std::size_t, Offsets, Codes, Codes, std::size_t, MaybeVector, bool, bool>(), "n_labels"_a,
             "offsets"_a.noconvert(), "roles"_a.noconvert(), "longest"_a.noconvert(), "max_length"_a,
             "limits"_a.noconvert().none(), "with_edges"_a, "with_ends"_a);
}

}  // namespace dualfield::bindings
