// In which order the nodes of a graph are eliminated, and how the tables of the steps fit each other.
//
// To eliminate a node is to maximise, or sum, over its labels: what is left depends on the labels of its neighbours,
// its separator, which are neighbours of each other from then on. The steps are a junction tree: the message of a step
// goes to the step that eliminates the first node of its separator. The next node is the one that joins the fewest
// pairs of neighbours that were not joined yet (min-fill), then the one with the fewest neighbours, then the lowest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dualfield {

// One step. Its table has an axis for each of the nodes, the eliminated one first; the last axis is contiguous.
struct EliminationStep {
    std::vector<std::int32_t> nodes;       // the eliminated node, then its separator in the order of elimination
    std::size_t table = 0, cells = 0;      // where its table begins, and its size
    std::size_t message = 0, n_below = 0;  // where its message begins, and its size
    std::int32_t parent = -1;              // the step that takes the message; -1: none, it is a number
    std::vector<std::size_t> strides;      // of the axes of the parent's table in this message
    std::vector<std::int32_t> children;    // steps whose messages this one takes

    // An edge between nodes of this table, and the strides of its axes in the pairs [from][to] of the edge.
    struct Edge {
        std::int32_t edge;
        std::vector<std::size_t> strides;
    };
    std::vector<Edge> edges;
};

struct EliminationPlan {
    std::vector<EliminationStep> steps;
    std::size_t cells = 0, messages = 0;  // numbers in all tables, and in all messages
    std::size_t width = 0;                // the longest separator
};

// edges [n_edges][2], none a loop. Gives up, with what it has, as soon as there are more cells than most_cells.
EliminationPlan plan_elimination(std::size_t n_nodes, std::size_t n_labels, const std::int32_t* edges,
                                 std::size_t n_edges, std::size_t most_cells);

// Goes over the cells of a table with n_axes axes of n entries: body(cell, at, stride) is told of n cells that follow
// each other, and of their places in another table, in which the axes have the given strides.
template <class Body>
void for_rows(std::size_t n_axes, std::size_t n, std::size_t cells, const std::size_t* strides, Body body) {
    if (n == 1) {
        body(0, 0, 0);
        return;
    }
    constexpr std::size_t kMostAxes = 64;  // no memory holds tables of more
    std::size_t count[kMostAxes] = {};
    std::size_t at = 0;
    for (std::size_t cell = 0; cell < cells; cell += n) {
        body(cell, at, strides[n_axes - 1]);
        for (std::size_t axis = n_axes - 1; axis-- > 0;) {
            at += strides[axis];
            if (++count[axis] < n) break;
            count[axis] = 0;
            at -= n * strides[axis];
        }
    }
}

}  // namespace dualfield
