#include "dualfield/structures/parse_trees/span_rows.hpp"

namespace dualfield {

std::string crossing_brackets(std::size_t n_words, const std::int32_t* labels) {
    // Brackets by their first word, the wider ones first: one that is open when the next begins must end behind it.
    std::vector<Bracket> opened;
    for (std::size_t i = 0; i < n_words; ++i)
        for (std::size_t j = n_words; j > i; --j) {
            if (labels[span_row(n_words, i, j)] == 0) continue;
            while (!opened.empty() && opened.back().j <= i) opened.pop_back();
            if (!opened.empty() && opened.back().j < j) {
                const Bracket& one = opened.back();
                return "the brackets (" + std::to_string(one.i) + ", " + std::to_string(one.j) + ") and (" +
                       std::to_string(i) + ", " + std::to_string(j) + ") cross.";
            }
            opened.push_back({i, j});
        }
    return {};
}

void mark_crossing(std::size_t n_words, const std::vector<Bracket>& brackets, std::vector<char>& crossing) {
    const std::size_t stride = n_words + 1;
    crossing.assign(stride * stride, 0);
    for (const Bracket& one : brackets) {
        for (std::size_t i = 0; i < one.i; ++i)  // begins before it, ends inside
            for (std::size_t j = one.i + 1; j < one.j; ++j) crossing[i * stride + j] = 1;
        for (std::size_t i = one.i + 1; i < one.j; ++i)  // begins inside, ends behind it
            for (std::size_t j = one.j + 1; j <= n_words; ++j) crossing[i * stride + j] = 1;
    }
}

}  // namespace dualfield
