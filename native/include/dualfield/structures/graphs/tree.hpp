// Rooted trees of any shape as a structure; an example may have several roots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dualfield/structures/structure.hpp"

namespace dualfield {

// score(y) = sum_t node[t][y_t] + sum_t edge[t][y_parent(t)][y_t] + sum over roots root[y_t]; -inf forbids.
// The scores of an edge are those that edges of its type share, plus its own where edges have any.
//
// Own parts: a row of K labels for each node; where edges have scores of their own, a row of K x K pairs for each node,
// label of the parent first, which says nothing for a root. Shared parts: K x K pairs for each edge type; where roots
// have scores, K labels.
class TreeStructure final : public Structure {
  public:
    struct Options {
        std::size_t n_types = 1;
        bool with_edges = false, with_roots = false;
        const std::int32_t* types = nullptr;  // [N]: type of the edge to the parent; null: all are 0
        const double* limits = nullptr;       // [n_types][K][K]: 0, or -inf for pairs that are forbidden; may be null
        const double* root_limits = nullptr;  // [K]: the same for labels of roots
    };
    // All must outlive the structure. parents [N]: node in the same example, counted from its first, or -1 for a root.
    // Throws std::invalid_argument, naming the example, where they are no trees.
    TreeStructure(std::size_t n_labels, std::span<const std::int64_t> offsets, const std::int32_t* parents,
                  const Options& options);

    std::size_t n_labels() const override { return n_labels_; }
    void log_partition(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void marginals(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                   Status*) const override;
    void maximum(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    // Among equals the one whose roots have the lowest labels, then their children, and so on.
    void argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, Status*) const override;
    void list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const override;
    void max_marginals(Examples, const ScoreView&, std::size_t n_threads, double* own, Status*) const override;
    void entropy(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void sample(Examples, const ScoreView&, std::size_t n_threads, std::size_t n_samples, std::uint64_t seed,
                std::int32_t* labels, Status*) const override;
    void k_best(Examples, const ScoreView&, std::size_t n_threads, std::size_t k, std::int32_t* labels, double* scores,
                Status*) const override;
    std::string refusal(std::size_t example, const std::int32_t* labels) const override;
    std::unique_ptr<Block> block() const override;
    std::unique_ptr<Slope> slope() const override;
    bool list_junction(std::size_t example, JunctionParts& out) const override;

  private:
    class Pass;
    class OneTree;
    class Lists;
    class Sums;
    template <class Where>
    void solve_sums(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*, Where where) const;
    bool same_shape(std::size_t one, std::size_t other) const;
    void spread(Pass& pass, std::size_t example, double* nodes, double* edges, double* shared) const;
    void decode(Pass& pass, std::size_t example, std::int32_t* labels) const;

    std::size_t type_of(std::size_t node) const {
        return options_.types ? static_cast<std::size_t>(options_.types[node]) : 0;
    }

    std::size_t n_labels_;
    const std::int32_t* parents_;
    const Options options_;
    std::vector<std::int32_t> order_;  // [N]: the nodes of each example, parents before their children
};

}  // namespace dualfield
