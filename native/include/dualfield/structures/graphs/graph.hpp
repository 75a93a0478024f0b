// Graphs of any shape as a structure, exact by elimination on a junction tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "dualfield/structures/graphs/graph_parts.hpp"

namespace dualfield {

struct EliminationPlan;

// Elimination needs more memory than was allowed.
class TooWide : public std::invalid_argument {
  public:
    using std::invalid_argument::invalid_argument;
};

class GraphStructure final : public GraphParts {
  public:
    using Options = GraphParts::Options;
    // The budget: bytes that the tables of one example may take. Throws TooWide, naming the example, where elimination
    // needs more.
    GraphStructure(std::size_t n_labels, std::span<const std::int64_t> offsets, const std::int32_t* edges,
                   std::span<const std::int64_t> edge_offsets, const Options& options, std::size_t budget);
    ~GraphStructure() override;
    GraphStructure(const GraphStructure&) = delete;
    GraphStructure& operator=(const GraphStructure&) = delete;

    // The largest number of neighbours that a node of an example has when it is eliminated; 1 for a tree.
    std::size_t width(std::size_t example) const;

    void log_partition(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void marginals(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                   Status*) const override;
    void maximum(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    // Among equals the one whose node that is eliminated last has the lowest label, then the node before it, and so on.
    void argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, Status*) const override;
    void bounded_argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, double* bounds,
                        Status*) const override;
    void max_marginals(Examples, const ScoreView&, std::size_t n_threads, double* own, Status*) const override;
    void entropy(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void sample(Examples, const ScoreView&, std::size_t n_threads, std::size_t n_samples, std::uint64_t seed,
                std::int32_t* labels, Status*) const override;
    std::unique_ptr<Block> block() const override;
    std::unique_ptr<Slope> slope() const override;
    bool list_junction(std::size_t example, JunctionParts& out) const override;

  private:
    class Pass;
    void list_scopes(std::size_t example, JunctionParts& out) const;
    class OneGraph;

    const EliminationPlan& plan(std::size_t example) const;
    template <class Body>
    void for_groups(Examples, const ScoreView&, std::size_t n_threads, bool in_lanes, Body body) const;

    std::vector<std::unique_ptr<const EliminationPlan>> plans_;  // of each shape
};

}  // namespace dualfield
