// Rows of sentences that are gathered into partitions of a corpus, numbered anew, and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dualfield {

// Sentences in memory that others own, such as a mapped file.
struct SentenceRows {
    std::span<const std::int64_t> offsets;  // [sentences + 1], in rows
    std::span<const std::int64_t> indptr;   // [rows + 1]
    std::span<const std::int32_t> indices;
    std::span<const double> values;       // empty: all weights are 1
    std::span<const std::int32_t> names;  // what each column is called in the result; empty: as here
};

// A sentence of one of several sources.
struct SentencePlace {
    std::int32_t source;
    std::int64_t sentence;
};

// How many rows and entries sentences have together. Throws std::invalid_argument unless each of them is sound: inside
// of its source, with rows that follow each other.
struct GatheredSize {
    std::size_t n_rows, n_entries;
};
GatheredSize gathered_size(std::span<const SentenceRows> sources, std::span<const SentencePlace> places);

// Puts sentences one after another: offsets [places + 1], indptr [rows + 1], indices [entries] and, unless null, values
// [entries]. The places must have passed gathered_size. Throws std::invalid_argument for a column without a name.
void gather_rows(std::span<const SentenceRows> sources, std::span<const SentencePlace> places, std::int64_t* offsets,
                 std::int64_t* indptr, std::int32_t* indices, double* values);

// Replaces each number, in [0, n_names), by its place in the order of first occurrence, and returns that order.
std::vector<std::int32_t> number_by_first(std::span<std::int32_t> numbers, std::size_t n_names);

// How often outputs occur together with each column; entries of weight 0 do not count, nor do rows with output -1.
struct ColumnCounts {
    std::vector<std::int64_t> indptr;   // [columns + 1]
    std::vector<std::int32_t> outputs;  // rising within a column
    std::vector<std::int64_t> counts;
};
ColumnCounts count_outputs(const SentenceRows& rows, std::span<const std::int32_t> outputs, std::size_t n_columns,
                           std::size_t n_outputs);

}  // namespace dualfield
