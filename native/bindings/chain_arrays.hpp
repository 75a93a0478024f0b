// Linear chains and their data as Python passes them, checked.
#pragma once

#include <cstdint>
#include <optional>

#include "arrays.hpp"
#include "dualfield/objectives/chain_model.hpp"

namespace dualfield::bindings {

using Numbers = Input<double, 1>;
using MaybeNumbers = std::optional<Numbers>;
using MaybeMatrix = std::optional<Input<double, 2>>;

// Rows with the arrays that they view.
struct BoundRows {
    std::optional<Input<std::int64_t, 1>> indptr;
    std::optional<Input<std::int32_t, 1>> indices;
    MaybeNumbers values;
    MaybeMatrix dense;
    FeatureRows rows;
    std::size_t n_rows;

    BoundRows(std::optional<Input<std::int64_t, 1>> starts, std::optional<Input<std::int32_t, 1>> columns,
              MaybeNumbers weights, MaybeMatrix matrix, std::size_t n_columns)
        : indptr(starts), indices(columns), values(weights), dense(matrix) {
        require(dense.has_value() != indptr.has_value() && indptr.has_value() == indices.has_value(),
                "rows are dense, or have indptr and indices");
        n_rows = dense ? dense->shape(0) : indptr->size() - 1;
        require(!dense || dense->shape(1) == n_columns, "dense must have n_columns columns");
        if (indptr) {
            require(indptr->size() > 0 && indptr->data()[0] == 0, "indptr must begin with 0");
            for (std::size_t r = 0; r < n_rows; ++r)
                require(indptr->data()[r + 1] >= indptr->data()[r], "indptr must not decrease");
            require(static_cast<std::size_t>(indptr->data()[n_rows]) == indices->size(),
                    "indptr must end with the number of entries");
            for (std::size_t q = 0; q < indices->size(); ++q)
                require(indices->data()[q] >= 0 && static_cast<std::size_t>(indices->data()[q]) < n_columns,
                        "indices must be in [0, n_columns)");
            require(!values || values->size() == indices->size(), "values must have an entry for each index");
        }
        rows = {.indptr = data_or_null(indptr),
                .indices = data_or_null(indices),
                .values = data_or_null(values),
                .dense = data_or_null(dense),
                .n_columns = n_columns};
    }
};

struct BoundModel {
    Numbers clique_mask;
    MaybeNumbers start_limits, stop_limits;
    ChainModel model;

    BoundModel(const ChainTopology& topology, const LinearMap* node, const LinearMap* pair, Numbers mask,
               bool with_ends, MaybeNumbers start, MaybeNumbers stop)
        : clique_mask(mask), start_limits(start), stop_limits(stop) {
        require(!node || node->n_outputs() == topology.n_labels(), "the node map must have an output for each label");
        require(!pair || pair->n_outputs() == topology.n_cliques(), "the pair map must have an output for each clique");
        require(mask.size() == topology.n_cliques(), "clique_mask must have shape (n_cliques,)");
        require(!start || start->size() == topology.n_labels(), "start_limits must have shape (n_labels,)");
        require(!stop || stop->size() == topology.n_labels(), "stop_limits must have shape (n_labels,)");
        model = {.topology = &topology,
                 .node = node,
                 .pair = pair,
                 .clique_mask = clique_mask.data(),
                 .with_ends = with_ends,
                 .start_limits = data_or_null(start_limits),
                 .stop_limits = data_or_null(stop_limits)};
    }
};

struct BoundData {
    Input<std::int64_t, 1> offsets;
    std::optional<Input<std::int32_t, 1>> labels;
    MaybeNumbers weights;
    MaybeMatrix cost;
    std::optional<Input<bool, 2>> allowed;
    const BoundModel& model;
    ChainData data;

    BoundData(const BoundModel& bound, Input<std::int64_t, 1> cuts, const BoundRows* rows, const BoundRows* pair_rows,
              std::optional<Input<std::int32_t, 1>> codes, MaybeNumbers each, MaybeMatrix costs,
              std::optional<Input<bool, 2>> choices, double temperature)
        : offsets(cuts), labels(codes), weights(each), cost(costs), allowed(choices), model(bound) {
        const std::size_t n_labels = bound.model.topology->n_labels();
        require(offsets.size() > 0 && offsets.data()[0] == 0, "offsets must begin with 0");
        for (std::size_t i = 1; i < offsets.size(); ++i)
            require(offsets.data()[i] >= offsets.data()[i - 1], "offsets must not decrease");
        const auto n_nodes = static_cast<std::size_t>(offsets.data()[offsets.size() - 1]);
        require((rows != nullptr) == (bound.model.node != nullptr), "rows belong to a node map");
        require(!rows || (rows->n_rows == n_nodes && rows->rows.n_columns == bound.model.node->n_columns()),
                "rows must have a row for each node and the columns of the node map");
        require((pair_rows != nullptr) == (bound.model.pair != nullptr), "pair_rows belong to a pair map");
        require(
            !pair_rows || (pair_rows->n_rows == n_nodes && pair_rows->rows.n_columns == bound.model.pair->n_columns()),
            "pair_rows must have a row for each node and the columns of the pair map");
        require(!labels || labels->size() == n_nodes, "labels must have one entry for each node");
        if (labels)
            for (std::size_t t = 0; t < n_nodes; ++t)
                require(labels->data()[t] >= 0 && static_cast<std::size_t>(labels->data()[t]) < n_labels,
                        "labels must be codes in [0, n_labels)");
        require(!weights || weights->size() + 1 == offsets.size(), "weights must have one entry for each example");
        require(!cost || (cost->shape(0) == n_labels && cost->shape(1) == n_labels),
                "cost must have shape (n_labels, n_labels)");
        require(!allowed || (allowed->shape(0) == n_nodes && allowed->shape(1) == n_labels),
                "allowed must have shape (n_nodes, n_labels)");
        require(temperature >= 0.0, "temperature must not be negative");
        data = {.offsets = {offsets.data(), offsets.size()},
                .rows = rows ? rows->rows : FeatureRows{},
                .pair_rows = pair_rows ? pair_rows->rows : FeatureRows{},
                .labels = data_or_null(labels),
                .weights = data_or_null(weights),
                .cost = data_or_null(cost),
                .allowed = allowed ? reinterpret_cast<const std::uint8_t*>(allowed->data()) : nullptr,
                .temperature = temperature};
    }

    const double* checked(const Numbers& w) const {
        need_features();
        require(w.size() == model.model.size(), "w must have an entry for each parameter");
        return w.data();
    }
    void need_features() const { require(model.model.node != nullptr, "features are needed"); }
    void need_labels() const { require(data.labels && data.weights, "labels and weights are needed"); }
};

}  // namespace dualfield::bindings
