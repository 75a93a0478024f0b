// How solvers that visit one example at a time lay out its scores and sums.
#pragma once

#include <array>
#include <cstddef>

#include "dualfield/structures/structure.hpp"

namespace dualfield {

// Scores or sums of one example: own parts, table by table, and shared ones.
template <class T>
struct PartsOfOne {
    T *own, *shared;
};

// The own parts of one example follow each other: all of the first table, then all of the second.
template <class T>
std::array<T*, kMostTables> tables_of_one(const PartLayout& parts, std::size_t example, T* own) {
    std::array<T*, kMostTables> tables{};
    for (std::size_t g = 0; g < parts.tables.size(); ++g) {
        tables[g] = own;
        own += parts.tables[g].n_rows(example) * parts.tables[g].width;
    }
    return tables;
}
inline ScoreView view_of_one(const PartLayout& parts, std::size_t example, PartsOfOne<const double> scores) {
    return {.own = tables_of_one(parts, example, scores.own), .shared = scores.shared};
}

}  // namespace dualfield
