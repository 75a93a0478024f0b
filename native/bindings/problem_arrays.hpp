// Problems and their features as Python passes them, checked.
#pragma once

#include <cstdint>
#include <optional>

#include "dualfield/objectives/objective.hpp"
#include "structure_arrays.hpp"

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

// Examples of a structure, their features and labels.
struct BoundProblem {
    const BoundStructure& bound;
    Numbers shared_mask;
    std::optional<Codes> labels;
    MaybeNumbers weights;
    MaybeMatrix cost;
    std::optional<Input<bool, 2>> allowed;
    ScoreMap scores;
    Problem problem;

    // node and edge: maps of the first and the second table, with their features. No node map: scores come from a
    // kernel.
    BoundProblem(const BoundStructure& structure, const LinearMap* node, const BoundRows* rows, const LinearMap* edge,
                 const BoundRows* edge_rows, Numbers mask, std::optional<Codes> codes, MaybeNumbers each,
                 MaybeMatrix costs, std::optional<Input<bool, 2>> choices, double temperature)
        : bound(structure),
          shared_mask(mask),
          labels(codes),
          weights(each),
          cost(costs),
          allowed(choices),
          scores(structure.structure().parts(),
                 checked_tables(structure.structure().parts(), node, rows, edge, edge_rows), shared_mask.data()) {
        const PartLayout& parts = bound.structure().parts();
        const std::size_t n_labels = parts.tables[0].width;
        require(mask.size() == parts.n_shared, "shared_mask must have shape (n_shared,)");
        if (labels) bound.checked(*labels);
        require(!weights || weights->size() == bound.structure().n_examples(),
                "weights must have one entry for each example");
        require(!cost || (cost->shape(0) == n_labels && cost->shape(1) == n_labels),
                "cost must have shape (n_labels, n_labels)");
        require(!allowed || (allowed->shape(0) == static_cast<std::size_t>(parts.tables[0].offsets.back()) &&
                             allowed->shape(1) == n_labels),
                "allowed must have shape (n_nodes, n_labels)");
        require(temperature >= 0.0, "temperature must not be negative");
        problem = {.structure = &bound.structure(),
                   .scores = &scores,
                   .labels = data_or_null(labels),
                   .weights = data_or_null(weights),
                   .cost = data_or_null(cost),
                   .allowed = allowed ? reinterpret_cast<const std::uint8_t*>(allowed->data()) : nullptr,
                   .temperature = temperature};
    }
    BoundProblem(const BoundProblem&) = delete;
    BoundProblem& operator=(const BoundProblem&) = delete;

    const double* checked(const Numbers& w) const {
        need_features();
        require(w.size() == problem.size(), "w must have an entry for each parameter");
        return w.data();
    }
    void need_features() const { require(scores.has_features(), "features are needed"); }
    void need_labels() const { require(problem.labels && problem.weights, "labels and weights are needed"); }

  private:
    // The table needs features in rows before this one.
    static std::size_t end_of_rows(const OwnTable& table) {
        std::size_t end = 0;
        for (std::size_t i = 0; i + 1 < table.offsets.size(); ++i)
            if (table.n_rows(i) > 0) end = std::max(end, table.feature_row(i) + table.n_rows(i));
        return end;
    }
    static std::vector<ScoreMap::Table> checked_tables(const PartLayout& parts, const LinearMap* node,
                                                       const BoundRows* rows, const LinearMap* edge,
                                                       const BoundRows* edge_rows) {
        require((node != nullptr) == (rows != nullptr), "rows belong to a node map");
        require(!node || node->n_outputs() == parts.tables[0].width, "the node map must have an output for each label");
        require(!rows || (rows->n_rows == static_cast<std::size_t>(parts.tables[0].offsets.back()) &&
                          rows->rows.n_columns == node->n_columns()),
                "rows must have a row for each node and the columns of the node map");
        require(node ? (edge != nullptr) == (parts.tables.size() > 1) : edge == nullptr,
                "an edge map belongs to a table of edges, and to a node map");
        require((edge != nullptr) == (edge_rows != nullptr), "edge_rows belong to an edge map");
        require(!edge || edge->n_outputs() == parts.tables[1].width,
                "the edge map must have an output for each part of an edge");
        require(!edge_rows || (edge_rows->n_rows >= end_of_rows(parts.tables[1]) &&
                               edge_rows->rows.n_columns == edge->n_columns()),
                "edge_rows must have a row for each edge and the columns of the edge map");
        std::vector<ScoreMap::Table> tables(1);
        if (node) tables[0] = {node, rows->rows};
        if (edge) tables.push_back({edge, edge_rows->rows});
        return tables;
    }
};

}  // namespace dualfield::bindings
