// User-defined structures, written in Python: the same interface as those of the core, with a callback for each
// example.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <string>

#include "dualfield/core/layout.hpp"
#include "register.hpp"
#include "structure_arrays.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

using Vector = Input<double, 1>;
using Matrix = Input<double, 2>;

// Calls an object with best(i, node, shared), marginals(i, node, shared), parts(i, labels) and refusal(i, labels). Node
// scores are [length][K], shared ones [n_shared]; both are at temperature 1.
class UserStructure final : public Structure {
  public:
    UserStructure(nb::object callbacks, std::size_t n_labels, std::span<const std::int64_t> offsets,
                  std::size_t n_shared)
        : callbacks_(std::move(callbacks)), n_labels_(n_labels) {
        label_offsets_ = offsets;
        parts_.tables.push_back({n_labels, offsets, offsets.first(offsets.size() - 1)});
        parts_.n_shared = n_shared;
    }

    std::size_t n_labels() const override { return n_labels_; }

    void log_partition(Examples examples, const ScoreView& view, std::size_t, double* out,
                       Status* statuses) const override {
        for_examples(examples, view, statuses, [&](std::size_t i, const One& one) {
            out[i - examples.first] = nb::cast<double>(ask_marginals(i, one)[0]);
            return out[i - examples.first];
        });
    }
    void marginals(Examples examples, const ScoreView& view, std::size_t, const PartSums& sums, double* out,
                   Status* statuses) const override {
        for_examples(examples, view, statuses, [&](std::size_t i, const One& one) {
            const nb::tuple answer = ask_marginals(i, one);
            double* nodes = sums.own[0] + (first(i) - first(examples.first)) * n_labels_;
            const auto node = nb::cast<Matrix>(answer[1]);
            require(node.shape(0) == length(i) && node.shape(1) == n_labels_,
                    "marginals must return node marginals of the shape of the node scores");
            std::copy_n(node.data(), length(i) * n_labels_, nodes);
            const auto shared = nb::cast<Vector>(answer[2]);
            require(shared.size() == parts_.n_shared, "marginals must return a sum for each shared part");
            if (sums.shared)
                std::copy_n(shared.data(), parts_.n_shared, sums.shared + (i - examples.first) * parts_.n_shared);
            return out[i - examples.first] = nb::cast<double>(answer[0]);
        });
    }
    void maximum(Examples examples, const ScoreView& view, std::size_t, double* out, Status* statuses) const override {
        for_examples(examples, view, statuses, [&](std::size_t i, const One& one) {
            return out[i - examples.first] = score_of(i, one, ask_best(i, one));
        });
    }
    void argmax(Examples examples, const ScoreView& view, std::size_t, std::int32_t* labels,
                Status* statuses) const override {
        for_examples(examples, view, statuses, [&](std::size_t i, const One& one) {
            const std::vector<std::int32_t> found = ask_best(i, one);
            std::copy(found.begin(), found.end(), labels + (first(i) - first(examples.first)));
            return score_of(i, one, found);
        });
    }
    void score(Examples examples, const ScoreView& view, std::size_t, const std::int32_t* labels, double* out,
               Status* statuses) const override {
        for_examples(examples, view, statuses, [&](std::size_t i, const One& one) {
            const std::int32_t* own = labels + (first(i) - first(examples.first));
            const std::vector<std::int32_t> given(own, own + length(i));
            out[i - examples.first] = refusal(i, own).empty() ? score_of(i, one, given) : -kInfinity;
            return 0.0;
        });
    }
    // H = log Z - <theta, mu>.
    void entropy(Examples examples, const ScoreView& view, std::size_t, double* out, Status* statuses) const override {
        for_examples(examples, view, statuses, [&](std::size_t i, const One& one) {
            const nb::tuple answer = ask_marginals(i, one);
            const auto node = nb::cast<Matrix>(answer[1]);
            const auto shared = nb::cast<Vector>(answer[2]);
            double inner = 0.0;
            for (std::size_t j = 0; j < length(i) * n_labels_; ++j)
                if (node.data()[j] > 0.0) inner += node.data()[j] * one.node[j];
            for (std::size_t j = 0; j < parts_.n_shared; ++j)
                if (shared.data()[j] > 0.0) inner += shared.data()[j] * one.shared[j];
            const double total = nb::cast<double>(answer[0]);
            out[i - examples.first] = std::max(total - inner, 0.0);
            return total;
        });
    }
    void list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const override {
        const nb::gil_scoped_acquire lock;
        out.own[0].assign(labels, labels + length(example));
        out.shared = nb::cast<std::vector<std::int32_t>>(callbacks_.attr("parts")(example, as_array(example, labels)));
        for (const std::int32_t part : out.shared)
            require(part >= 0 && static_cast<std::size_t>(part) < parts_.n_shared, "parts must be in [0, n_cliques)");
    }
    std::string refusal(std::size_t example, const std::int32_t* labels) const override {
        const nb::gil_scoped_acquire lock;
        return nb::cast<std::string>(callbacks_.attr("refusal")(example, as_array(example, labels)));
    }

  private:
    // Scores of one example, times the inverse temperature.
    struct One {
        std::vector<double> node, shared;
    };
    template <class Body>
    void for_examples(Examples examples, const ScoreView& view, Status* statuses, Body body) const {
        const nb::gil_scoped_acquire lock;
        One one;
        for (std::size_t i = examples.first; i < examples.last; ++i) {
            const double* rows = view.own[0] + (first(i) - first(examples.first)) * n_labels_;
            one.node.assign(rows, rows + length(i) * n_labels_);
            one.shared.assign(parts_.n_shared, 0.0);
            if (view.shared) std::copy_n(view.shared, parts_.n_shared, one.shared.begin());
            bool bad = false;
            for (auto* scores : {&one.node, &one.shared})
                for (double& score : *scores) {
                    score *= view.inverse_temperature;
                    bad |= !(score < kInfinity);
                }
            const double value = bad ? std::nan("") : body(i, one);
            statuses[i - examples.first] = !(value < kInfinity)  ? Status::bad_number
                                           : value == -kInfinity ? Status::impossible
                                                                 : Status::ok;
        }
    }
    nb::object as_array(std::size_t example, const std::int32_t* labels) const {
        Output<std::int32_t> out({length(example)});
        std::copy_n(labels, length(example), out.data());
        return nb::cast(out.release());
    }
    nb::tuple ask_marginals(std::size_t i, const One& one) const {
        return nb::cast<nb::tuple>(ask("marginals", i, one));
    }
    std::vector<std::int32_t> ask_best(std::size_t i, const One& one) const {
        const auto labels = nb::cast<Codes>(ask("best", i, one));
        require(labels.size() == length(i), "best must return a label for each node");
        for (std::size_t t = 0; t < labels.size(); ++t)
            require(labels.data()[t] >= 0 && static_cast<std::size_t>(labels.data()[t]) < n_labels_,
                    "best must return labels in [0, n_labels)");
        return {labels.data(), labels.data() + labels.size()};
    }
    nb::object ask(const char* question, std::size_t i, const One& one) const {
        Output<double> node({length(i), n_labels_}), shared({one.shared.size()});
        std::copy(one.node.begin(), one.node.end(), node.data());
        std::copy(one.shared.begin(), one.shared.end(), shared.data());
        return callbacks_.attr(question)(i, nb::cast(node.release()), nb::cast(shared.release()));
    }
    double score_of(std::size_t i, const One& one, const std::vector<std::int32_t>& labels) const {
        PartList parts;
        list_parts(i, labels.data(), parts);
        return score_parts(i, {.own = {one.node.data()}, .shared = one.shared.data()},
                           {{parts.own[0], {}, {}}, parts.shared});
    }

    nb::object callbacks_;
    std::size_t n_labels_;
};

class BoundUserStructure final : public BoundStructure {
  public:
    BoundUserStructure(nb::object callbacks, std::size_t n_labels, Offsets offsets, std::size_t n_shared)
        : offsets_(checked_offsets(offsets)),
          structure_(std::move(callbacks), n_labels, {offsets_.data(), offsets_.size()}, n_shared) {
        require(n_labels > 0, "n_labels must be positive");
    }
    const Structure& structure() const override { return structure_; }

  private:
    Offsets offsets_;
    UserStructure structure_;
};

}  // namespace

void register_user_structures(nb::module_& module) {
    nb::class_<BoundUserStructure, BoundStructure>(module, "UserStructure", "A structure that is written in Python.")
        .def(nb::init<nb::object, std::size_t, Offsets, std::size_t>(), "callbacks"_a, "n_labels"_a,
             "offsets"_a.noconvert(), "n_shared"_a);
}

}  // namespace dualfield::bindings
