// A structure whose nodes may not have all labels: another structure, asked with scores of minus infinity for the
// others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "dualfield/structures/structure.hpp"

namespace dualfield {

// Scores and marginals stay those of all labels, so that nothing that uses a structure need know of masks: what the
// scores of forbidden labels are does not matter, and their marginals are 0.
class MaskedStructure final : public Structure {
  public:
    // All must outlive it. The first table of the other structure has a row of K labels for each node; sets [n_sets][K]
    // says which labels are in each set, set_of [nodes] which set a node has its label from.
    MaskedStructure(const Structure& inner, const std::uint8_t* sets, const std::int32_t* set_of);

    std::size_t n_labels() const override { return inner_.n_labels(); }
    std::int32_t empty_label() const override { return inner_.empty_label(); }
    void log_partition(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void marginals(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                   Status*) const override;
    void maximum(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, Status*) const override;
    void bounded_argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, double* bounds,
                        Status*) const override;
    void best_point(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                    Status*) const override;
    void score(Examples, const ScoreView&, std::size_t n_threads, const std::int32_t* labels, double* out,
               Status*) const override;
    void list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const override;
    void max_marginals(Examples, const ScoreView&, std::size_t n_threads, double* own, Status*) const override;
    void entropy(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void sample(Examples, const ScoreView&, std::size_t n_threads, std::size_t n_samples, std::uint64_t seed,
                std::int32_t* labels, Status*) const override;
    void k_best(Examples, const ScoreView&, std::size_t n_threads, std::size_t k, std::int32_t* labels, double* scores,
                Status*) const override;
    std::string no_labelling(std::size_t example) const override;
    std::string refusal(std::size_t example, const std::int32_t* labels) const override;
    double score_parts(std::size_t example, const ScoreView& scores, const PartSpan& parts) const override;
    void add_cost(std::size_t example, const std::int32_t* truth, const double* cost, double scale,
                  double* own) const override;
    double expected_cost(std::size_t example, const std::int32_t* truth, const double* cost,
                         const double* own) const override;
    std::unique_ptr<Block> block() const override;
    std::unique_ptr<Slope> slope() const override;

  private:
    class Masked;
    class OneExample;
    class OneSlope;

    bool allows(std::size_t node, std::size_t label) const {
        return sets_[static_cast<std::size_t>(set_of_[node]) * n_labels() + label] != 0;
    }

    const Structure& inner_;
    const std::uint8_t* sets_;
    const std::int32_t* set_of_;
};

}  // namespace dualfield
