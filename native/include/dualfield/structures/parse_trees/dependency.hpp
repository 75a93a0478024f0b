// Projective dependency trees: every word has one head, a word or the root, and arcs do not cross (Eisner 1996).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dualfield/structures/structure.hpp"

namespace dualfield {

// The nodes of a sentence of n words are the n * n arcs that it may have: those to the first word first, each from the
// root, then from the words before and behind it. Label 0 says that an arc is not in the tree; another one says what
// kind of arc it is.
//
//   score(y) = sum over all arcs of own[arc][label of the arc], over trees y; -inf forbids.
//
// Own parts: a row of K labels for each arc. There are no shared parts. The kinds of an arc are combined first, so that
// K enters the time by n^2 K only.
class DependencyStructure final : public Structure {
  public:
    // The offsets must outlive the structure. Every example has a square number of nodes.
    DependencyStructure(std::size_t n_labels, std::span<const std::int64_t> offsets, bool is_single);

    std::size_t n_labels() const override { return n_labels_; }
    std::int32_t empty_label() const override { return 0; }
    void log_partition(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void marginals(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                   Status*) const override;
    void maximum(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    // Among equals the one with the first child of the root, then, from the top down, the first split of each span;
    // of labels the lowest.
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

    // The number of words of a sentence with so many arcs; their square is less than it if there is none.
    static std::size_t n_words(std::size_t n_arcs);
    // The row of an arc to a child [0, n) from a head [0, n], which is 0 for the root and t + 1 for word t.
    static std::size_t row(std::size_t n_words, std::size_t head, std::size_t child) {
        return child * n_words + (head <= child ? head : head - 1);
    }
    // Why heads [n] are no projective tree; empty if they are. Words are counted from 1, and 0 is the root. `crosses`
    // is set where they are a tree whose arcs cross.
    static std::string refusal_of_heads(std::span<const std::int32_t> heads, bool is_single, bool* crosses = nullptr);

  private:
    class Pass;
    class Best;
    class OneSentence;
    class OneSlope;

    std::size_t n_labels_;
    bool is_single_;
};

}  // namespace dualfield
