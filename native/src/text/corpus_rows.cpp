#include "dualfield/text/corpus_rows.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "dualfield/text/vocabulary.hpp"

namespace dualfield {

namespace {

constexpr std::size_t most_cells = std::size_t{1} << 22;  // of a table of all columns and outputs

}  // namespace

GatheredSize gathered_size(std::span<const SentenceRows> sources, std::span<const SentencePlace> places) {
    GatheredSize size{0, 0};
    for (const SentencePlace& place : places) {
        if (place.source < 0 || static_cast<std::size_t>(place.source) >= sources.size())
            throw std::invalid_argument("there is no source " + std::to_string(place.source) + ".");
        const SentenceRows& source = sources[static_cast<std::size_t>(place.source)];
        const auto sentence = static_cast<std::size_t>(place.sentence);
        if (place.sentence < 0 || sentence + 1 >= source.offsets.size())
            throw std::invalid_argument("there is no sentence " + std::to_string(place.sentence) + ".");
        const std::int64_t first = source.offsets[sentence], last = source.offsets[sentence + 1];
        if (first < 0 || last < first || static_cast<std::size_t>(last) >= source.indptr.size())
            throw std::invalid_argument("rows of sentences must follow each other.");
        for (std::int64_t row = first; row < last; ++row)
            if (source.indptr[static_cast<std::size_t>(row)] > source.indptr[static_cast<std::size_t>(row) + 1])
                throw std::invalid_argument("entries of rows must follow each other.");
        const std::int64_t begin = source.indptr[static_cast<std::size_t>(first)];
        const std::int64_t end = source.indptr[static_cast<std::size_t>(last)];
        if (begin < 0 || static_cast<std::size_t>(end) > source.indices.size())
            throw std::invalid_argument("entries of rows must lie in their array.");
        size.n_rows += static_cast<std::size_t>(last - first);
        size.n_entries += static_cast<std::size_t>(end - begin);
    }
    return size;
}

void gather_rows(std::span<const SentenceRows> sources, std::span<const SentencePlace> places, std::int64_t* offsets,
                 std::int64_t* indptr, std::int32_t* indices, double* values) {
    std::int64_t n_rows = 0, n_entries = 0;
    *offsets++ = 0;
    *indptr++ = 0;
    for (const SentencePlace& place : places) {
        const SentenceRows& source = sources[static_cast<std::size_t>(place.source)];
        const auto first = static_cast<std::size_t>(source.offsets[static_cast<std::size_t>(place.sentence)]);
        const auto last = static_cast<std::size_t>(source.offsets[static_cast<std::size_t>(place.sentence) + 1]);
        const std::int64_t begin = source.indptr[first];
        const auto count = static_cast<std::size_t>(source.indptr[last] - begin);
        for (std::size_t row = first; row < last; ++row) *indptr++ = n_entries + source.indptr[row + 1] - begin;
        const std::int32_t* from = source.indices.data() + begin;
        std::int32_t* const to = indices + n_entries;
        if (source.names.empty()) {
            if (count > 0) std::memcpy(to, from, count * sizeof(std::int32_t));
        } else {
            for (std::size_t i = 0; i < count; ++i) {
                const auto column = static_cast<std::size_t>(static_cast<std::uint32_t>(from[i]));
                if (column >= source.names.size()) throw std::invalid_argument("a column has no name.");
                to[i] = source.names[column];
            }
        }
        if (values != nullptr) {
            if (source.values.empty())
                std::fill_n(values + n_entries, count, 1.0);
            else
                std::copy_n(source.values.data() + begin, count, values + n_entries);
        }
        n_rows += static_cast<std::int64_t>(last - first);
        n_entries += static_cast<std::int64_t>(count);
        *offsets++ = n_rows;
    }
}

void first_entries(std::span<const std::int32_t> columns, std::span<std::int64_t> first) {
    std::fill(first.begin(), first.end(), std::int64_t{-1});
    for (std::size_t q = 0; q < columns.size(); ++q) {
        if (columns[q] < 0 || static_cast<std::size_t>(columns[q]) >= first.size())
            throw std::invalid_argument("a column has no name.");
        std::int64_t& found = first[static_cast<std::size_t>(columns[q])];
        if (found < 0) found = static_cast<std::int64_t>(q);
    }
}

std::uint64_t digest(std::span<const char> bytes) noexcept {
    constexpr std::size_t page = std::size_t{1} << 16;
    std::uint64_t state = bytes.size();
    for (std::size_t at = 0; at < bytes.size(); at += page) {
        const std::size_t size = std::min(page, bytes.size() - at);
        state = multiply_fold(state + at + 1, hash_text({bytes.data() + at, size}) | 1) ^ state;
    }
    return state;
}

ColumnCounts count_outputs(const SentenceRows& rows, std::span<const std::int32_t> outputs, std::size_t n_columns,
                           std::size_t n_outputs) {
    const auto for_entries = [&](auto use) {
        for (std::size_t row = 0; row < outputs.size(); ++row) {
            if (outputs[row] < 0) continue;
            for (auto q = static_cast<std::size_t>(rows.indptr[row]);
                 q < static_cast<std::size_t>(rows.indptr[row + 1]); ++q)
                if (rows.values.empty() || rows.values[q] != 0.0)
                    use(static_cast<std::size_t>(rows.indices[q]), outputs[row]);
        }
    };
    ColumnCounts result;
    result.indptr.reserve(n_columns + 1);
    result.indptr.push_back(0);
    const std::size_t n_cells = n_columns * n_outputs;
    if (n_outputs > 0 && n_columns <= std::numeric_limits<std::size_t>::max() / n_outputs &&
        n_cells <= std::max(most_cells, rows.indices.size()) &&
        rows.indices.size() <= std::numeric_limits<std::uint32_t>::max()) {
        std::vector<std::uint32_t, TableAllocator<std::uint32_t>> table(n_cells, 0);
        for_entries([&](std::size_t column, std::int32_t output) {
            ++table[column * n_outputs + static_cast<std::size_t>(output)];
        });
        for (std::size_t c = 0; c < n_columns; ++c) {
            for (std::size_t output = 0; output < n_outputs; ++output) {
                const std::uint32_t count = table[c * n_outputs + output];
                if (count == 0) continue;
                result.outputs.push_back(static_cast<std::int32_t>(output));
                result.counts.push_back(static_cast<std::int64_t>(count));
            }
            result.indptr.push_back(static_cast<std::int64_t>(result.outputs.size()));
        }
        return result;
    }
    // The outputs of each column side by side, by counting.
    std::vector<std::int64_t> ends(n_columns + 1, 0);
    for_entries([&](std::size_t column, std::int32_t) { ++ends[column + 1]; });
    for (std::size_t c = 0; c < n_columns; ++c) ends[c + 1] += ends[c];
    std::vector<std::int32_t> seen(static_cast<std::size_t>(ends.back()));
    {
        std::vector<std::int64_t> next(ends.begin(), ends.end() - 1);
        for_entries(
            [&](std::size_t column, std::int32_t output) { seen[static_cast<std::size_t>(next[column]++)] = output; });
    }
    std::vector<std::int64_t> counts(n_outputs, 0);
    std::vector<std::int32_t> met;
    for (std::size_t c = 0; c < n_columns; ++c) {
        met.clear();
        for (auto q = static_cast<std::size_t>(ends[c]); q < static_cast<std::size_t>(ends[c + 1]); ++q)
            if (counts[static_cast<std::size_t>(seen[q])]++ == 0) met.push_back(seen[q]);
        std::sort(met.begin(), met.end());
        for (const std::int32_t output : met) {
            result.outputs.push_back(output);
            result.counts.push_back(counts[static_cast<std::size_t>(output)]);
            counts[static_cast<std::size_t>(output)] = 0;
        }
        result.indptr.push_back(static_cast<std::int64_t>(result.outputs.size()));
    }
    return result;
}

}  // namespace dualfield
