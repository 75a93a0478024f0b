// Labelled bracketings of sentences without a grammar: any tree over the words, with a score for each bracket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "dualfield/structures/structure.hpp"

namespace dualfield {

// A sentence of n words has a row for each of its n (n + 1) / 2 spans (i, j), 0 <= i < j <= n, ordered by i, then j.
// Label 0 of a row says that there is no bracket; other labels are those of the bracket around words i to j - 1. The
// brackets of a labelling do not cross. A bracket may have any number of parts, words or other brackets.
//
//   score(y) = sum over all rows of own[row][y_row]; -inf forbids, also label 0: then the bracket must be there.
//
// Own parts: a row of K labels for each span. There are no shared parts.
class SpansStructure final : public Structure {
  public:
    // The number of rows of every example must be n (n + 1) / 2 for some n. With `rooted` the span of all words must
    // have a label. The offsets must outlive the structure.
    SpansStructure(std::size_t n_labels, std::span<const std::int64_t> offsets, bool rooted);

    std::size_t n_labels() const override { return n_labels_; }
    std::int32_t empty_label() const override { return 0; }
    void log_partition(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void marginals(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                   Status*) const override;
    void maximum(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    // Among equals, from the outermost span inwards: no bracket before a bracket, lower labels before higher ones, and
    // the shortest first part.
    void argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, Status*) const override;
    void list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const override;
    void max_marginals(Examples, const ScoreView&, std::size_t n_threads, double* own, Status*) const override;
    void entropy(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void sample(Examples, const ScoreView&, std::size_t n_threads, std::size_t n_samples, std::uint64_t seed,
                std::int32_t* labels, Status*) const override;
    void k_best(Examples, const ScoreView&, std::size_t n_threads, std::size_t k, std::int32_t* labels, double* scores,
                Status*) const override;
    std::string refusal(std::size_t example, const std::int32_t* labels) const override;
    std::string no_labelling(std::size_t example) const override;
    std::unique_ptr<Block> block() const override;
    std::unique_ptr<Slope> slope() const override;

  private:
    class OneSentence;
    class OneSlope;

    std::size_t n_labels_;
    bool rooted_;
};

}  // namespace dualfield
