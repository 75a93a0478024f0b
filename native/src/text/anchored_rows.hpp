// Composes the attributes of rows of one sentence after another, and turns them into columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dualfield/text/anchored.hpp"
#include "text_buffer.hpp"

namespace dualfield {

// Columns of rows, one row after another.
struct AnchoredRowBlock {
    std::vector<std::int32_t> columns;
    std::vector<std::int32_t> row_sizes;
    std::int64_t n_unknown = 0;
};

class AnchoredRowMaker {
  public:
    AnchoredRowMaker(const AnchoredForm& form, const NumberedTokens& tokens);

    // The next rows are those of a sentence. Attributes of the one before must not wait.
    void begin(std::size_t sentence);
    // A row with these anchors. Its attributes wait until one of the lookups below, which is due when is_full().
    void add(std::int32_t one, std::int32_t two);
    bool is_full() const noexcept { return waiting_.size() >= most_waiting; }
    void insert_into(Vocabulary& vocabulary);
    void find_in(const Vocabulary& vocabulary);
    // All rows so far, none of which may wait.
    AnchoredRowBlock take();

  private:
    static constexpr std::size_t most_waiting = 2048;  // whose text fits the second level of the cache

    // Text that can be read past its end as far as `readable` says.
    struct View {
        const char* bytes;
        std::size_t size, readable;
    };
    // What a value macro is at each place of the sentence; at 0 for the root, at t + 1 for token t.
    struct Series {
        std::size_t column;
        std::int32_t offset;
        std::vector<View> views;
    };
    // All values of a column with blanks between: the text of any segment is a part of it.
    struct Joined {
        std::size_t column;
        std::string text;
        std::vector<std::size_t> begins;  // [length], of each token
    };
    struct Step {
        AnchoredMacro::Kind kind;
        std::size_t anchor, source;  // which series, joined text or column
    };
    struct Plan {
        std::vector<Piece> pieces;
        std::vector<Step> steps;
        int only_anchor;                   // the only one that its macros name, or -1
        int between;                       // the step that makes several attributes, or -1
        std::vector<std::int32_t> places;  // the column of each place, if it has only one anchor
    };
    struct Waiting {
        std::size_t start, stop;  // in composed_
        std::uint64_t hash;
    };

    Plan plan_of(const AnchoredText& text);
    const std::int32_t* ids(std::size_t column) const;  // of the tokens of the sentence
    View view_of(const Step& step, std::int32_t one, std::int32_t two) const;
    std::int32_t compose(const Plan& plan, std::int32_t one, std::int32_t two, const View* between);
    void add_between(const Plan& plan, std::int32_t one, std::int32_t two);
    const std::string& size_text(std::int32_t one, std::int32_t two) const;
    View value(std::size_t column, std::int32_t id) const;
    template <class LookUp>
    void resolve(const Vocabulary& vocabulary, LookUp look_up);
    void settle();

    const bool are_arcs_;
    const NumberedTokens& tokens_;
    AnchoredRowBlock block_;
    std::vector<Series> series_;
    std::vector<Joined> joined_;
    std::vector<Plan> plans_;
    std::vector<std::string> sizes_;
    std::size_t sentence_ = 0;

    std::vector<std::vector<std::uint32_t>> stamps_;  // [columns][values]: the last set that a value was put into
    std::uint32_t stamp_ = 0;
    TextBuffer composed_;
    std::vector<Waiting> waiting_;
    std::vector<std::int32_t> found_;                     // [waiting_]
    std::size_t settled_rows_ = 0, settled_columns_ = 0;  // of the block: nothing in them waits
};

}  // namespace dualfield
