// Sentences with the trees of a weighted context-free grammar: brackets with labels, by rules of two parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dualfield/structures/structure.hpp"

namespace dualfield {

// The rules of a grammar: A -> B C over symbols, A -> t for terminals t, which are the words or their tags, and the
// symbols of whole sentences.
struct GrammarRules {
    std::size_t n_symbols = 0, n_labels = 1, n_terminals = 0;
    std::span<const std::int32_t> parent, left, right;               // [binary rules]: symbols
    std::span<const std::int32_t> terminal, symbol, terminal_label;  // [lexical rules]
    std::span<const std::int32_t> roots;                             // symbols
    std::span<const std::int32_t> label;                             // [symbols]: of a span of two words or more
    // For messages; a terminal that no rule has is -1 - its place among the unknown ones.
    std::vector<std::string> label_names, terminal_names, unknown_names;
    std::string unknown_hint;  // behind what is said of an unknown terminal
};

// The rules in the orders in which passes need them.
class GrammarIndex {
  public:
    explicit GrammarIndex(const GrammarRules& rules);

    std::size_t n_symbols() const { return by_left.size() - 1; }
    std::size_t n_pairs() const { return pair_left.size(); }
    // The pair (left, right), or n_pairs() if no rule has it.
    std::size_t find_pair(std::int32_t left, std::int32_t right) const;

    std::vector<std::int32_t> pair_left, pair_right;  // pairs of children that occur, in order
    std::vector<std::int32_t> pair_first;             // [pairs + 1]: where its rules begin in the order by pairs
    std::vector<std::int32_t> by_left;                // [symbols + 1]: where the pairs of a left child begin
    std::vector<std::int32_t> rule, parent;           // in the order by pairs: the binary rule, and its parent
    std::vector<char> is_word;                        // [symbols]: 1 for those that have lexical rules only
    // Where the rules of a pair are in order and have parents one after another: the number of these parents among all
    // such rows of them; -1 elsewhere.
    std::vector<std::int32_t> run_of;
    std::vector<std::int32_t> by_parent, parents;    // [symbols + 1] and the binary rules of each symbol, in order
    std::vector<std::int32_t> pair_of, place_of;     // of a binary rule: its pair, and its place in the order by pairs
    std::vector<std::int32_t> by_terminal, lexical;  // [terminals + 1] and the lexical rules of each terminal

  private:
    static constexpr std::int32_t kShortestRun = 4;
    void find_runs();
};

// Rows are spans, (first word, word behind the last), ordered by both; the label of a row is that of the bracket there,
// and label 0 says that there is none: symbols of label 0 join the parts of brackets that have more than two. An
// example of n words has n (n + 1) / 2 rows.
//
//   score(y) = sum over rows own[row][label] + sum of the scores of the rules in the derivation; -inf forbids. In
//   column 0 it says that there must be a bracket.
//
// A labelling has at most one derivation, which rules must see to. Own parts: a row of labels for each span. Shared
// parts: binary rules, lexical rules, roots. Time n^3 for each pair of children that occurs, memory n^2 for each
// symbol.
class GrammarStructure final : public Structure {
  public:
    // Offsets are of rows and of words; terminals [words] are codes, negative for one that no rule has. All
    // must outlive the structure.
    GrammarStructure(GrammarRules rules, std::span<const std::int64_t> offsets,
                     std::span<const std::int64_t> word_offsets, const std::int32_t* terminals);

    static std::size_t row_of(std::size_t first, std::size_t last, std::size_t n_words) {
        return first * n_words - first * (first + 1) / 2 + last - 1;
    }

    std::size_t n_labels() const override { return rules_.n_labels; }
    std::int32_t empty_label() const override { return 0; }
    void log_partition(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void marginals(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                   Status*) const override;
    void maximum(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    // Among equals, from the top: the first rule of the grammar, then the shortest left part.
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

    std::size_t n_words(std::size_t example) const {
        return static_cast<std::size_t>(word_offsets_[example + 1] - word_offsets_[example]);
    }
    const std::int32_t* terminals(std::size_t example) const { return terminals_ + word_offsets_[example]; }
    const GrammarRules& rules() const { return rules_; }
    const GrammarIndex& index() const { return index_; }
    std::size_t lexical_part(std::size_t rule) const { return rules_.parent.size() + rule; }
    std::size_t root_part(std::size_t root) const { return rules_.parent.size() + rules_.terminal.size() + root; }

  private:
    class Pass;
    class OneSentence;
    class OneSlope;

    const GrammarRules rules_;
    const GrammarIndex index_;
    std::span<const std::int64_t> word_offsets_;
    const std::int32_t* terminals_;
};

}  // namespace dualfield
