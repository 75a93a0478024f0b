// In which order the nodes of a graph are eliminated, and how the tables of the steps fit each other.
//
// To eliminate a node is to maximise, or sum, over its labels: what is left depends on the labels of its neighbours,
// its separator, which are neighbours of each other from then on. The steps are a junction tree: the message of a step
// goes to the step that eliminates the first node of its separator. The next node is the one that joins the fewest
// pairs of neighbours that were not joined yet (min-fill), then the one with the smallest table, then the lowest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dualfield {

// How the cells of a table lie in a smaller one, which has some of its axes in any order. Axes of one label are left
// out, and those that are walked in one go are joined: few loops remain, the two innermost of which are told apart.
struct Walk {
    struct Loop {
        std::size_t size, stride;  // the stride is that in the smaller table; 0: it lacks the axis
    };
    std::vector<Loop> outer;  // outermost first
    Loop rows{1, 0}, run{1, 0};

    static constexpr std::size_t kMostLoops = 64;  // no memory holds tables of more axes
};

// One step. Its table has an axis for each of the nodes, the eliminated one first; the last axis is contiguous. It is
// filled axis by axis: what depends on the first axes only is multiplied before the others are there, and sums over the
// last axes are taken once for all that does not depend on them.
struct EliminationStep {
    std::vector<std::int32_t> nodes;       // the eliminated node, then its separator in the order of elimination
    std::size_t n_labels = 1;              // of the eliminated node
    std::size_t table = 0, cells = 0;      // where its table begins, and its size
    std::size_t message = 0, n_below = 0;  // where its message begins, and its size
    std::int32_t parent = -1;              // the step that takes the message; -1: none, it is a number
    std::vector<std::size_t> strides;      // of the nodes of the separator in the message

    // A factor whose nodes are all in this table and in none before, or the message of an earlier step.
    struct Input {
        bool is_message;
        std::size_t index;
        Walk walk;  // of the cells of its level in it
    };
    // The first axes, `cells` together, `repeats` of them for each cell of the level before, and what depends on the
    // last of them. The first level has the eliminated node alone, the last one all axes.
    struct Level {
        std::size_t cells, repeats;
        std::vector<Input> inputs;
    };
    std::vector<Level> levels;
};

// A factor is a table over the nodes of its scope, the last of which is its contiguous axis.
struct EliminationPlan {
    std::vector<EliminationStep> steps;
    std::vector<std::size_t> factor_cells;        // [n_factors]
    std::vector<std::size_t> factor_begins;       // [n_factors + 1]: where each begins in an array of all
    std::size_t cells = 0, messages = 0;          // numbers in all tables, and in all messages
    std::size_t most_below = 1, most_factor = 1;  // the largest message; factor, or label set
    std::size_t most_partial = 1;                 // numbers in the levels of a step before its last
    std::size_t width = 0;                        // the longest separator
    bool is_too_large = false;                    // then the last step is the one that is, and none can be used
};

struct EliminationLimits {
    std::size_t cells;  // of all tables together
    std::size_t table;  // of one
};

// The scope of factor f: nodes[offsets[f]] ... nodes[offsets[f + 1] - 1], distinct, in [0, number of nodes).
struct Scopes {
    std::span<const std::int32_t> nodes;
    std::span<const std::int64_t> offsets;

    std::size_t size() const { return offsets.size() - 1; }
    std::span<const std::int32_t> operator[](std::size_t f) const {
        const auto first = static_cast<std::size_t>(offsets[f]);
        return nodes.subspan(first, static_cast<std::size_t>(offsets[f + 1]) - first);
    }
};

// Gives up, with what it has, as soon as a limit is passed: nothing of the size of a table is allocated here.
EliminationPlan plan_elimination(std::span<const std::int32_t> n_labels, const Scopes& scopes,
                                 const EliminationLimits& limits);

}  // namespace dualfield
