// The edges of a graph dealt out to forests, for bounds that are averages over trees.
//
// The fewer the forests, the tighter the bound. Where they are not more for it the forests are made of paths on which
// the numbers of the nodes rise, as on a grid that is numbered row by row: sweeps take one step on each. Otherwise they
// are filled one edge after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dualfield {

// An edge has two arcs: 2 e leads from its first node to its second, 2 e + 1 back. Every node is in every forest; a
// node without edges there is a tree of its own.
struct Forests {
    std::size_t n_nodes = 0, count = 0;
    std::vector<std::int32_t> ends;       // [2 E]: the node that each arc leads to
    std::vector<std::int32_t> order;      // [n]: in which sweeps visit the nodes
    std::vector<std::int32_t> tree;       // [count][n]: which tree of its forest a node is in, counted over all forests
    std::vector<std::int32_t> up;         // [count][n]: the arc from a node to its parent; -1 for roots
    std::vector<std::int32_t> depth;      // [count][n]
    std::vector<std::int32_t> roots;      // of each tree
    std::vector<std::int32_t> owner;      // of each tree: its forest
    std::vector<std::int32_t> rising;     // arcs to parents, those of children before those of their parents
    std::vector<std::int32_t> forest_of;  // [E]
    std::vector<std::int32_t> degree;     // [n]: edges of a node in all forests

    std::span<const std::int32_t> into(std::size_t forest, std::size_t node) const {
        const std::size_t at = forest * n_nodes + node;
        return {arcs.data() + first[at], static_cast<std::size_t>(first[at + 1] - first[at])};
    }
    std::vector<std::int32_t> first, arcs;  // [count * n + 1]: arcs that lead into each node of each forest
};

// edges [n_edges][2], none a loop.
Forests cut_into_forests(std::size_t n_nodes, const std::int32_t* edges, std::size_t n_edges);

}  // namespace dualfield
