// An example as cliques and the scores among them, for solvers that keep a distribution over its labellings in tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dualfield {

struct JunctionParts {
    // Scores of the labels of one or two nodes, the first one's label first: n_labels^nodes parts that follow each
    // other.
    struct Factor {
        std::int32_t first, second;  // nodes; second is -1 where there is one only
        std::int32_t row;            // of the second own table, whose parts these are too; -1: none
        std::int64_t shared;         // the first of the shared parts
    };
    // In the order of elimination: a node, and the later ones whose labels its scores depend on then, its separator.
    // The first of these that is eliminated has the others in its own step.
    std::vector<std::vector<std::int32_t>> steps;
    std::vector<Factor> factors;  // nodes of each are together in a step
    // What is forbidden: 0, or -inf, for the labels of one or two nodes, as scores are laid out.
    struct Limit {
        std::int32_t first, second;
        const double* table;
    };
    std::vector<Limit> limits;
    // Scores of the labels of any number of nodes, that of the last one changing fastest.
    struct Scope {
        std::vector<std::int32_t> nodes;
        std::int64_t own;     // the first of its parts in the second own table, from its first row; -1: none
        std::int64_t shared;  // the first of the shared parts
        const double* limit;  // what is forbidden, as in Limit; may be null
    };
    std::vector<Scope> scopes;  // nodes of each are together in a step

    void clear() {
        steps.clear();
        factors.clear();
        limits.clear();
        scopes.clear();
    }
};

}  // namespace dualfield
