// The derivation of a tree that is given by its brackets: which rules make it, or why none do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dualfield/structures/parse_trees/grammar.hpp"

namespace dualfield {

class GrammarDerivation {
  public:
    GrammarDerivation(const GrammarStructure& structure, std::size_t example)
        : structure_(structure),
          rules_(structure.rules()),
          index_(structure.index()),
          terminals_(structure.terminals(example)),
          n_(structure.n_words(example)) {}

    // Finds it; false, with the reason in refusal(), if there is none.
    bool find(const std::int32_t* labels);
    const std::string& refusal() const { return refusal_; }
    // Adds its rules and its root.
    void list(std::vector<std::int32_t>& shared) const;

  private:
    // A symbol that a part of the tree may have, made by a rule of others.
    struct Entry {
        std::int32_t symbol;
        std::size_t rule, left, right;  // left is kWord for a lexical rule
    };
    using Entries = std::vector<std::size_t>;  // places in entries_
    static constexpr std::size_t kWord = static_cast<std::size_t>(-1);

    std::int32_t label(std::size_t i, std::size_t j) const { return labels_[GrammarStructure::row_of(i, j, n_)]; }
    // The symbols of a bracket, and of a word; empty: the reason is in refusal_.
    Entries bracket(std::size_t i, std::size_t j);
    Entries word(std::size_t i);
    Entries join(const std::vector<Entries>& parts, std::int32_t label);
    void add(Entries& out, const Entries& left, const Entries& right, bool is_whole, std::int32_t label);
    std::size_t end_of_part(std::size_t i, std::size_t j, std::size_t at) const;
    std::string name_of(std::size_t i, std::size_t j) const;
    std::string terminal_name(std::size_t i) const;

    const GrammarStructure& structure_;
    const GrammarRules& rules_;
    const GrammarIndex& index_;
    const std::int32_t* terminals_;
    std::size_t n_, n_seen_ = 0, top_ = 0, root_ = 0;
    const std::int32_t* labels_ = nullptr;
    std::vector<Entry> entries_;
    std::vector<std::vector<std::size_t>> ends_;  // of the brackets from each word, longest first
    std::string refusal_;
};

}  // namespace dualfield
