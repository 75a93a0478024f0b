// Graphs of any shape: the layout of their parts, whatever answers the questions about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dualfield/structures/structure.hpp"

namespace dualfield {

// score(y) = sum_t node[t][y_t] + sum_e edge[e][y_from(e)][y_to(e)]; -inf forbids.
// The scores of an edge are those that edges of its type share, plus its own where edges have any.
//
// Own parts: a row of K labels for each node; where edges have scores of their own, a row of K x K pairs for each edge,
// label of the node that it comes from first. Shared parts: K x K pairs for each edge type.
//
// Edges may also have more than two nodes, as many as their type says: m of them have K^m parts, the label of the last
// node being the one that changes fastest. Own rows then have the parts of edges of every size, the smallest first, and
// an edge uses those of its own size: edges of different sizes have no part in common.
class GraphParts : public Structure {
  public:
    struct Options {
        std::size_t n_types = 1;
        bool with_edges = false;
        const std::int32_t* types = nullptr;    // [E]: type of each edge; null: all are 0
        const double* limits = nullptr;         // [n_types][K][K]: 0, or -inf for pairs that are forbidden; may be null
        const std::int64_t* scopes = nullptr;   // [E + 1]: where the nodes of each edge begin; null: all are pairs
        std::span<const std::int32_t> sizes{};  // [n_types], with scopes: nodes of the edges of each type
    };

    std::size_t n_labels() const override { return n_labels_; }
    void list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const override;
    std::string refusal(std::size_t example, const std::int32_t* labels) const override;

    // Nodes of the edges of an example, [n_edges][2], and types; edges are counted over all examples.
    const std::int32_t* edges_of(std::size_t example) const { return edges_ + 2 * first_edge(example); }
    std::size_t first_edge(std::size_t example) const { return static_cast<std::size_t>(edge_offsets_[example]); }
    std::span<const std::int64_t> edge_offsets() const { return edge_offsets_; }
    std::size_t n_edges(std::size_t example) const { return first_edge(example + 1) - first_edge(example); }
    std::size_t type_of(std::size_t edge) const {
        return options_.types ? static_cast<std::size_t>(options_.types[edge]) : 0;
    }
    bool with_edges() const { return options_.with_edges; }
    bool has_pairs_only() const { return !options_.scopes; }
    // The nodes of an edge, counted over all examples.
    std::span<const std::int32_t> scope(std::size_t edge) const {
        if (!options_.scopes) return {edges_ + 2 * edge, 2};
        const auto begin = static_cast<std::size_t>(options_.scopes[edge]);
        return {edges_ + begin, static_cast<std::size_t>(options_.scopes[edge + 1]) - begin};
    }
    // Where the shared parts of the edges of a type begin, and how many they are.
    std::size_t table(std::size_t type) const { return tables_[type]; }
    std::size_t table_cells(std::size_t type) const { return tables_[type + 1] - tables_[type]; }
    // Where the parts of edges of a type begin in an own row.
    std::size_t row_begin(std::size_t type) const { return row_begins_[type]; }
    // Which of the parts of its type an edge has.
    std::size_t part_of(std::size_t edge, const std::int32_t* labels) const {
        std::size_t part = 0;
        for (const std::int32_t node : scope(edge)) part = part * n_labels_ + static_cast<std::size_t>(labels[node]);
        return part;
    }

  protected:
    // All must outlive the structure. edges [E][2], or the nodes of one scope after another: nodes of the same example,
    // counted from its first; edge_offsets [n + 1]: where the edges of each example begin. Throws
    // std::invalid_argument, naming the example, where an edge is none.
    GraphParts(std::size_t n_labels, std::span<const std::int64_t> offsets, const std::int32_t* edges,
               std::span<const std::int64_t> edge_offsets, const Options& options);

    void check_edge(std::size_t example, std::size_t edge) const;

    std::size_t n_labels_;
    const std::int32_t* edges_;
    std::span<const std::int64_t> edge_offsets_;
    const Options options_;
    std::vector<std::size_t> tables_;          // [n_types + 1]: where the shared parts of each type begin
    std::vector<std::size_t> row_begins_;      // [n_types]
    std::size_t edge_width_ = 0;               // parts of an own row of an edge
    std::vector<std::size_t> shape_of_;        // [n]: examples with the same nodes and edges have the same shape
    std::vector<std::size_t> first_of_shape_;  // the first example of each shape
};

}  // namespace dualfield
