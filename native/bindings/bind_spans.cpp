// Labelled bracketings as Python passes them.
#include "dualfield/structures/parse_trees/span_rows.hpp"
#include "dualfield/structures/parse_trees/spans.hpp"
#include "register.hpp"
#include "structure_arrays.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

class BoundSpans final : public BoundStructure {
  public:
    BoundSpans(std::size_t n_labels, Offsets offsets, bool rooted)
        : offsets_(checked_offsets(offsets)),
          structure_(checked(n_labels), {offsets_.data(), offsets_.size()}, rooted) {}
    const Structure& structure() const override { return structure_; }

  private:
    std::size_t checked(std::size_t n_labels) const {
        require(n_labels > 0, "n_labels must be positive");
        for (std::size_t i = 0; i + 1 < offsets_.size(); ++i) {
            const auto n_rows = static_cast<std::size_t>(offsets_.data()[i + 1] - offsets_.data()[i]);
            require(n_span_rows(n_words_of(n_rows)) == n_rows,
                    "an example must have n (n + 1) / 2 rows, one for each span of n words");
        }
        return n_labels;
    }

    Offsets offsets_;
    SpansStructure structure_;
};

}  // namespace

void register_spans(nb::module_& module) {
    nb::class_<BoundSpans, BoundStructure>(module, "SpansStructure", "Labelled bracketings of sentences.")
        .def(nb::init<std::size_t, Offsets, bool>(), "n_labels"_a, "offsets"_a.noconvert(), "rooted"_a);
}

}  // namespace dualfield::bindings
