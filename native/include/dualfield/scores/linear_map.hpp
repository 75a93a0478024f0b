// From weights to scores and back: every column of a row of features adds its weights to the scores of some outputs.
//
// Outputs are the parts of a row of a table: labels of a node, or pairs of labels of an edge. A feature is a column
// with an output; which ones there are is fixed when the map is made. Columns with many outputs have a whole padded row
// of weights, which adds in a few vector operations; a bit for each output says which of its weights are features, and
// the others stay zero. Columns with few outputs list them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dualfield/core/layout.hpp"
#include "dualfield/core/memory.hpp"

namespace dualfield {

// A matrix with a row for each node or edge, sparse or dense.
struct FeatureRows {
    const std::int64_t* indptr = nullptr;   // [n_rows + 1]
    const std::int32_t* indices = nullptr;  // in [0, n_columns); any order, repeated ones add up
    const double* values = nullptr;         // null: all are 1
    const double* dense = nullptr;          // [n_rows][n_columns]; the others are null then
    std::size_t n_columns = 0;
};

class LinearMap {
  public:
    static constexpr std::uint32_t kWhole = 0xffffffffu;

    // Where the weights of a column are: a whole row, or `count` listed ones from `start` on.
    struct Place {
        std::uint32_t start, count;
    };

    // The outputs of column c are outputs[indptr[c]] ... outputs[indptr[c + 1] - 1], rising. Throws
    // std::invalid_argument where they are not.
    LinearMap(std::size_t n_outputs, std::span<const std::int64_t> indptr, std::span<const std::int32_t> outputs);

    std::size_t n_outputs() const { return n_outputs_; }
    std::size_t width() const { return padded(n_outputs_); }
    std::size_t n_columns() const { return places_.size(); }
    std::size_t n_features() const { return n_features_; }
    // Length of a vector of weights: whole rows with their padding first, then listed weights.
    std::size_t size() const { return listed_begin() + listed_outputs_.size(); }

    const Place* places() const { return places_.data(); }
    std::size_t listed_begin() const { return n_whole_ * width(); }
    const std::int32_t* listed_outputs() const { return listed_outputs_.data(); }
    // For each whole row and each vector of it, four bits: which of its weights are features.
    const std::uint8_t* masks() const { return masks_.data(); }

    // Index in a vector of weights of every feature, in the order of the constructor: [n_features].
    void feature_places(std::int64_t* out) const;

  private:
    std::size_t n_outputs_, n_features_, n_whole_ = 0;
    std::vector<Place> places_;
    std::vector<std::int32_t> listed_outputs_;
    std::vector<std::uint8_t> masks_;
};

// Sparse rows looked up once for many passes: for each row the places of its weights in the vector, whole rows first,
// then listed weights with their outputs. A pass needs neither the table of places nor branches on it.
class FeaturePlan {
  public:
    // rows must be sparse.
    FeaturePlan(const LinearMap& map, const FeatureRows& rows, std::size_t n_rows);

    struct Row {
        std::span<const std::uint32_t> whole;        // of whole rows: their number
        std::span<const std::uint32_t> listed;       // of listed weights: their number
        const std::int32_t* outputs;                 // of listed weights
        const double *whole_values, *listed_values;  // null: all are 1
    };
    bool is_weighted() const { return !whole_values_.empty(); }
    std::size_t bytes() const {
        return (whole_begin_.size() + listed_begin_.size() + whole_values_.size() + listed_values_.size()) * 8 +
               (whole_.size() + listed_.size() + outputs_.size()) * 4;
    }
    Row row(std::size_t r) const {
        const std::size_t w = whole_begin_[r], l = listed_begin_[r];
        return {{whole_.data() + w, whole_begin_[r + 1] - w},
                {listed_.data() + l, listed_begin_[r + 1] - l},
                outputs_.data() + l,
                whole_values_.empty() ? nullptr : whole_values_.data() + w,
                whole_values_.empty() ? nullptr : listed_values_.data() + l};
    }

    // Asks for what describes the rows, not for their weights.
    void prefetch(std::size_t first, std::size_t last) const {
        const auto all = [](const auto* begin, std::size_t n) {
            const auto* bytes = reinterpret_cast<const char*>(begin);
            for (std::size_t at = 0; at < n * sizeof(*begin); at += 64) prefetch_line(bytes + at);
        };
        const std::size_t l = listed_begin_[first], n_listed = listed_begin_[last] - l;
        all(whole_.data() + whole_begin_[first], whole_begin_[last] - whole_begin_[first]);
        all(listed_.data() + l, n_listed);
        all(outputs_.data() + l, n_listed);
        all(whole_begin_.data() + first, last - first);
        all(listed_begin_.data() + first, last - first);
    }

  private:
    std::vector<std::size_t> whole_begin_, listed_begin_;
    std::vector<std::uint32_t> whole_, listed_;
    std::vector<std::int32_t> outputs_;
    std::vector<double> whole_values_, listed_values_;
};

// Outputs that occur together with each column at least `least` times: indptr [n_columns + 1] and rising outputs.
struct ObservedFeatures {
    std::vector<std::int64_t> indptr;
    std::vector<std::int32_t> outputs;
};
// labels [n_rows]: the output of each row, or -1 for a row that does not count.
ObservedFeatures observe_features(const FeatureRows& rows, std::span<const std::int32_t> labels, std::size_t n_outputs,
                                  std::size_t least);

}  // namespace dualfield
