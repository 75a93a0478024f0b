#include "dualfield/text/corpus_rows.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace dualfield {

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

std::vector<std::int32_t> number_by_first(std::span<std::int32_t> numbers, std::size_t n_names) {
    std::vector<std::int32_t> order, place(n_names, -1);
    for (std::int32_t& number : numbers) {
        if (number < 0 || static_cast<std::size_t>(number) >= n_names)
            throw std::invalid_argument("a number has no name.");
        std::int32_t& found = place[static_cast<std::size_t>(number)];
        if (found < 0) {
            found = static_cast<std::int32_t>(order.size());
            order.push_back(number);
        }
        number = found;
    }
    return order;
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
    ColumnCounts result;
    result.indptr.reserve(n_columns + 1);
    result.indptr.push_back(0);
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
