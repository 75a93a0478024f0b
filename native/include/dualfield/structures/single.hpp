// Single nodes as a structure: every example is one row of scores, and there are no shared parts.
#pragma once

#include <memory>
#include <vector>

#include "dualfield/structures/structure.hpp"

namespace dualfield {

class SingleStructure final : public Structure {
  public:
    SingleStructure(std::size_t n_labels, std::size_t n_examples);

    std::size_t n_labels() const override { return n_labels_; }
    void log_partition(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void marginals(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                   Status*) const override;
    void maximum(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, Status*) const override;
    void score(Examples, const ScoreView&, std::size_t n_threads, const std::int32_t* labels, double* out,
               Status*) const override;
    void list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const override;
    void max_marginals(Examples, const ScoreView&, std::size_t n_threads, double* own, Status*) const override;
    void entropy(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void sample(Examples, const ScoreView&, std::size_t n_threads, std::size_t n_samples, std::uint64_t seed,
                std::int32_t* labels, Status*) const override;
    void k_best(Examples, const ScoreView&, std::size_t n_threads, std::size_t k, std::int32_t* labels, double* scores,
                Status*) const override;
    std::unique_ptr<Slope> slope() const override;

  private:
    template <class Body>
    void for_rows(Examples, const ScoreView&, std::size_t n_threads, Status*, Body body) const;

    std::size_t n_labels_;
    std::vector<std::int64_t> offsets_;  // 0 ... n
};

}  // namespace dualfield
