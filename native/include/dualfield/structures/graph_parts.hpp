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
class GraphParts : public Structure {
  public:
    struct Options {
        std::size_t n_types = 1;
        bool with_edges = false;
        const std::int32_t* types = nullptr;  // [E]: type of each edge; null: all are 0
        const double* limits = nullptr;       // [n_types][K][K]: 0, or -inf for pairs that are forbidden; may be null
    };

    std::size_t n_labels() const override { return n_labels_; }
    void list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const override;
    std::string refusal(std::size_t example, const std::int32_t* labels) const override;

    // Nodes of the edges of an example, [n_edges][2], and types; edges are counted over all examples.
    const std::int32_t* edges_of(std::size_t example) const { return edges_ + 2 * first_edge(example); }
    std::size_t first_edge(std::size_t example) const { return static_cast<std::size_t>(edge_offsets_[example]); }
    std::size_t n_edges(std::size_t example) const { return first_edge(example + 1) - first_edge(example); }
    std::size_t type_of(std::size_t edge) const {
        return options_.types ? static_cast<std::size_t>(options_.types[edge]) : 0;
    }
    bool with_edges() const { return options_.with_edges; }

  protected:
    // All must outlive the structure. edges [E][2]: nodes of the same example, counted from its first; edge_offsets
    // [n + 1]: where the edges of each example begin. Throws std::invalid_argument, naming the example, where an edge
    // is none.
    GraphParts(std::size_t n_labels, std::span<const std::int64_t> offsets, const std::int32_t* edges,
               std::span<const std::int64_t> edge_offsets, const Options& options);

    std::size_t n_labels_;
    const std::int32_t* edges_;
    std::span<const std::int64_t> edge_offsets_;
    const Options options_;
    std::vector<std::size_t> shape_of_;        // [n]: examples with the same nodes and edges have the same shape
    std::vector<std::size_t> first_of_shape_;  // the first example of each shape
};

}  // namespace dualfield
