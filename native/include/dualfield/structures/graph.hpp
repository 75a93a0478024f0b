// Graphs of any shape as a structure, exact by elimination on a junction tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dualfield/structures/structure.hpp"

namespace dualfield {

struct EliminationPlan;

// score(y) = sum_t node[t][y_t] + sum_e edge[e][y_from(e)][y_to(e)]; -inf forbids.
// The scores of an edge are those that edges of its type share, plus its own where edges have any.
//
// Own parts: a row of K labels for each node; where edges have scores of their own, a row of K x K pairs for each edge,
// label of the node that it comes from first. Shared parts: K x K pairs for each edge type.
class GraphStructure final : public Structure {
  public:
    struct Options {
        std::size_t n_types = 1;
        bool with_edges = false;
        const std::int32_t* types = nullptr;  // [E]: type of each edge; null: all are 0
        const double* limits = nullptr;       // [n_types][K][K]: 0, or -inf for pairs that are forbidden; may be null
        std::size_t budget = 0;               // bytes that the tables of one example may take
    };
    // All must outlive the structure. edges [E][2]: nodes of the same example, counted from its first; edge_offsets
    // [n + 1]: where the edges of each example begin. Throws std::invalid_argument, naming the example, where an edge
    // is none, or where elimination needs more than the budget.
    GraphStructure(std::size_t n_labels, std::span<const std::int64_t> offsets, const std::int32_t* edges,
                   std::span<const std::int64_t> edge_offsets, const Options& options);
    ~GraphStructure() override;
    GraphStructure(const GraphStructure&) = delete;
    GraphStructure& operator=(const GraphStructure&) = delete;

    std::size_t n_labels() const override { return n_labels_; }
    // The largest number of neighbours that a node of an example has when it is eliminated; 1 for a tree.
    std::size_t width(std::size_t example) const;

    void log_partition(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void marginals(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                   Status*) const override;
    void maximum(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    // Among equals the one whose node that is eliminated last has the lowest label, then the node before it, and so on.
    void argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, Status*) const override;
    void list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const override;
    void max_marginals(Examples, const ScoreView&, std::size_t n_threads, double* own, Status*) const override;
    void entropy(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void sample(Examples, const ScoreView&, std::size_t n_threads, std::size_t n_samples, std::uint64_t seed,
                std::int32_t* labels, Status*) const override;
    std::string refusal(std::size_t example, const std::int32_t* labels) const override;
    std::unique_ptr<Block> block() const override;

  private:
    class Pass;
    class OneGraph;

    const EliminationPlan& plan(std::size_t example) const;
    const std::int32_t* edges_of(std::size_t example) const { return edges_ + 2 * first_edge(example); }
    std::size_t first_edge(std::size_t example) const { return static_cast<std::size_t>(edge_offsets_[example]); }
    std::size_t n_edges(std::size_t example) const { return first_edge(example + 1) - first_edge(example); }
    std::size_t type_of(std::size_t edge) const {
        return options_.types ? static_cast<std::size_t>(options_.types[edge]) : 0;
    }

    std::size_t n_labels_;
    const std::int32_t* edges_;
    std::span<const std::int64_t> edge_offsets_;
    const Options options_;
    std::vector<std::unique_ptr<const EliminationPlan>> plans_;  // one for each shape that occurs
    std::vector<std::size_t> plan_of_;                           // [n]
};

}  // namespace dualfield
