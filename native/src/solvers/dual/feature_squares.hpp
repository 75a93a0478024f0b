// The squared norms of rows of features.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "dualfield/scores/linear_map.hpp"

namespace dualfield {

// squares [n_rows] += those of the first rows.
inline void add_squares(const FeatureRows& rows, std::vector<double>& squares) {
    std::vector<std::pair<std::int32_t, double>> entries;
    for (std::size_t r = 0; r < squares.size(); ++r) {
        if (rows.dense) {
            const double* x = rows.dense + r * rows.n_columns;
            for (std::size_t c = 0; c < rows.n_columns; ++c) squares[r] += x[c] * x[c];
            continue;
        }
        entries.clear();  // repeated ones add up
        for (std::int64_t j = rows.indptr[r]; j < rows.indptr[r + 1]; ++j)
            entries.emplace_back(rows.indices[j], rows.values ? rows.values[j] : 1.0);
        std::sort(entries.begin(), entries.end());
        for (std::size_t j = 0; j < entries.size();) {
            double sum = 0.0;
            for (const std::int32_t column = entries[j].first; j < entries.size() && entries[j].first == column; ++j)
                sum += entries[j].second;
            squares[r] += sum * sum;
        }
    }
}

}  // namespace dualfield
