// Graphs of any shape as a structure, by tree-reweighted bounds: for those that are too wide for exact answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dualfield/structures/graphs/graph_parts.hpp"

namespace dualfield {

struct Forests;

// A relaxation. Log-partition and maximum are upper bounds, marginals a point of the local polytope: those of an edge
// sum up to those of its nodes, but need not be those of any distribution. The best labelling is the best one that was
// found. Pairs of labels cannot be forbidden: there would be marginals on them.
class RelaxedGraphStructure final : public GraphParts {
  public:
    struct Accuracy {
        double tolerance = 1e-7;        // of the slack, for each node
        std::size_t most_sweeps = 200;  // after which it ends in any case
    };
    // As for GraphParts.
    RelaxedGraphStructure(std::size_t n_labels, std::span<const std::int64_t> offsets, const std::int32_t* edges,
                          std::span<const std::int64_t> edge_offsets, const Options& options, const Accuracy& accuracy);
    ~RelaxedGraphStructure() override;
    RelaxedGraphStructure(const RelaxedGraphStructure&) = delete;
    RelaxedGraphStructure& operator=(const RelaxedGraphStructure&) = delete;

    // Among how many forests the edges of an example are dealt out.
    std::size_t n_forests(std::size_t example) const;

    void log_partition(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void marginals(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                   Status*) const override;
    void maximum(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    // The indicator of a labelling that reaches the bound; where none was found, the better of the best labelling and
    // of the beliefs at a low temperature.
    void best_point(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                    Status*) const override;
    void argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, Status*) const override;
    void bounded_argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, double* bounds,
                        Status*) const override;
    // Refused, with a sentence: bounds do not answer them.
    void max_marginals(Examples, const ScoreView&, std::size_t n_threads, double* own, Status*) const override;
    void entropy(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void sample(Examples, const ScoreView&, std::size_t n_threads, std::size_t n_samples, std::uint64_t seed,
                std::int32_t* labels, Status*) const override;
    void k_best(Examples, const ScoreView&, std::size_t n_threads, std::size_t k, std::int32_t* labels, double* scores,
                Status*) const override;

  private:
    class Pass;

    const Accuracy accuracy_;
    std::vector<std::unique_ptr<const Forests>> forests_;  // of each shape
};

}  // namespace dualfield
