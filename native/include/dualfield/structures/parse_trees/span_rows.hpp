// The rows that stand for the spans of a sentence, and which brackets can stand together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dualfield {

// The spans (i, j), 0 <= i < j <= n, of n words, ordered by i, then j.
constexpr std::size_t n_span_rows(std::size_t n_words) {
    return n_words * (n_words + 1) / 2;
}
constexpr std::size_t span_row(std::size_t n_words, std::size_t i, std::size_t j) {
    return i * n_words - i * (i + 1) / 2 + j - 1;
}
// The number of words of a sentence with so many rows; one that has fewer rows if there is none with as many.
constexpr std::size_t n_words_of(std::size_t n_rows) {
    std::size_t n = 0;
    while (n_span_rows(n + 1) <= n_rows) ++n;
    return n;
}

struct Bracket {
    std::size_t i, j;
};

// Calls use(i, j, row) for every row of a sentence in order.
template <class Use>
void for_spans(std::size_t n_words, Use use) {
    for (std::size_t i = 0, row = 0; i < n_words; ++i)
        for (std::size_t j = i + 1; j <= n_words; ++j, ++row) use(i, j, row);
}

// Two brackets of a labelling that cross, as text; empty if there are none. labels [n_span_rows], 0 for no bracket.
std::string crossing_brackets(std::size_t n_words, const std::int32_t* labels);

// crossing [(n + 1)^2], by i (n + 1) + j: whether the span crosses one of the brackets.
void mark_crossing(std::size_t n_words, const std::vector<Bracket>& brackets, std::vector<char>& crossing);

}  // namespace dualfield
