// Attributes of rows that stand for two places of a sentence: segments and spans with a first and a last token, arcs
// from a head to a child.
//
// Values of tokens are numbered once for all sentences. What a text makes of one anchor is looked up once for each
// place of a sentence, not once for each row; what it makes of both is composed in a buffer, a few thousand attributes
// at a time, and looked up in the vocabulary with its memory prefetched. So nothing is kept between sentences, and the
// work on sentences can be shared by threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dualfield/text/templates.hpp"
#include "dualfield/text/vocabulary.hpp"

namespace dualfield {

// Sentences whose values are numbered, each column for itself.
struct NumberedTokens {
    std::vector<Vocabulary> values;        // [columns]
    std::vector<std::int64_t> offsets{0};  // [sentences + 1], in tokens
    std::vector<std::int32_t> ids;         // of each sentence [columns][length]

    std::size_t n_sentences() const noexcept { return offsets.size() - 1; }
    std::size_t length(std::size_t sentence) const noexcept {
        return static_cast<std::size_t>(offsets[sentence + 1] - offsets[sentence]);
    }
};

struct AnchoredMacro {
    enum class Kind {
        value,      // of a column, of the token some places from an anchor
        whole,      // all values of a column from the first anchor to the second, with blanks between
        size,       // number of tokens from the first anchor to the second; of arcs direction and distance
        between,    // the distinct values of a column strictly between the anchors: an attribute for each
        direction,  // of arcs: L or R, where the child is of the head
    };
    Kind kind;
    std::int32_t anchor, offset;
    std::size_t column;
};

struct AnchoredText {
    std::vector<std::string> pieces;  // what stands before each macro and behind the last: macros.size() + 1
    std::vector<AnchoredMacro> macros;
};

struct AnchoredForm {
    bool are_arcs;  // anchors are head and child, the head -1 for the root; else first and last token
    std::vector<AnchoredText> texts;
};

// Rows of sentences, not owned.
struct AnchoredPlaces {
    std::span<const std::int32_t> anchors;  // [rows][2]
    std::span<const std::int64_t> offsets;  // [sentences + 1], in rows
};

// Throws std::invalid_argument, naming the row, unless every anchor is a token of its sentence.
void check_places(const AnchoredForm& form, const NumberedTokens& tokens, const AnchoredPlaces& places);

// The attributes of the rows of sentences [first, last). None of the arguments may change or go as long as it is used.
class AnchoredReader {
  public:
    AnchoredReader(const AnchoredForm& form, const NumberedTokens& tokens, const AnchoredPlaces& places)
        : form_(form), tokens_(tokens), places_(places) {}

    // Puts the attributes of rows where `mask` [rows] is true into the vocabulary.
    void collect(std::size_t first, std::size_t last, const bool* mask, Vocabulary& vocabulary) const;
    // The columns of all rows; attributes that are new become columns.
    void grow(std::size_t first, std::size_t last, Vocabulary& vocabulary, RowSink& sink) const;
    // The columns of all rows; returns how many attributes are unknown, which are left out. The same for any number of
    // threads.
    std::int64_t find(std::size_t first, std::size_t last, const Vocabulary& vocabulary, std::size_t n_threads,
                      RowSink& sink) const;

  private:
    const AnchoredForm& form_;
    const NumberedTokens& tokens_;
    const AnchoredPlaces& places_;
};

}  // namespace dualfield
