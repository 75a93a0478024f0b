// Tables with given sums of rows and columns: how beliefs of an edge are made to agree with those of its nodes.
#pragma once

#include <algorithm>
#include <cstddef>

namespace dualfield {

// Cuts rows, then columns, of a table [k][k] of numbers of at least 0 down to their sums. What is missing of these goes
// to row_rest and column_rest [k]; returns how much that is. Any table with sums row_rest and column_rest fills it up
// (Altschuler et al. 2017).
inline double cut_down(std::size_t k, const double* rows, const double* columns, double* table, double* row_rest,
                       double* column_rest) {
    std::fill_n(column_rest, k, 0.0);
    for (std::size_t a = 0; a < k; ++a) {
        double sum = 0.0;
        for (std::size_t b = 0; b < k; ++b) sum += table[a * k + b];
        const double cut = sum > rows[a] ? rows[a] / sum : 1.0;
        for (std::size_t b = 0; b < k; ++b) column_rest[b] += table[a * k + b] *= cut;
    }
    for (std::size_t b = 0; b < k; ++b)
        column_rest[b] = column_rest[b] > columns[b] ? columns[b] / column_rest[b] : 1.0;
    double missing = 0.0;
    for (std::size_t a = 0; a < k; ++a) {
        row_rest[a] = rows[a];
        for (std::size_t b = 0; b < k; ++b) row_rest[a] -= table[a * k + b] *= column_rest[b];
        row_rest[a] = std::max(row_rest[a], 0.0);
        missing += row_rest[a];
    }
    std::copy_n(columns, k, column_rest);
    for (std::size_t a = 0; a < k; ++a)
        for (std::size_t b = 0; b < k; ++b) column_rest[b] -= table[a * k + b];
    for (std::size_t b = 0; b < k; ++b) column_rest[b] = std::max(column_rest[b], 0.0);
    return missing;
}

}  // namespace dualfield
