// Templates: lines of text with macros that turn rows of raw columns into attributes.
//
// A template is parsed once. Reading is integer work, but for what was never met before: values are numbered per
// column; what a macro makes of a value is found once for each distinct value; and the values that a line puts together
// are numbered as a gram, by exact comparison of integers. A line keeps the attribute's column for each gram, so that
// the string itself is composed only when a line meets a gram for the first time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dualfield/text/vocabulary.hpp"

namespace dualfield {

// What characters beyond ASCII are: a database that the caller brings. For ASCII it is not asked.
struct Characters {
    static constexpr unsigned letter = 1, digit = 2, lower = 4, upper = 8, space = 16, graphic = 32;
    unsigned (*classes)(char32_t character);
    char32_t (*lowered)(char32_t character);
};

// Beyond ASCII nothing has a class and all stays as it is, as in the C locale.
Characters ascii_characters() noexcept;

// Wapiti's regular expressions: characters, '.', classes such as \d, each once, optional or any number of times.
struct Pattern {
    enum class Repeat : unsigned char { once, optional, any };
    struct Item {
        char kind;  // 'c' one character, '.' any, or the letter of a class below a backslash
        Repeat repeat;
        char32_t character;
        bool operator==(const Item&) const = default;
    };
    std::vector<Item> items;
    bool from_start = false, to_end = false;  // anchored by ^ and by $
    bool operator==(const Pattern&) const = default;
};

// What is made of the value in a column of one token: %x, %t, %m of CRF++ and Wapiti, and four of our own.
struct Derivation {
    enum class Kind { value, test, match, shape, outline, prefix, suffix };
    Kind kind = Kind::value;
    bool lowered = false;
    std::int32_t column = 0;
    std::int32_t length = 0;  // of a prefix or suffix, in characters
    Pattern pattern;          // of a test or match
    bool operator==(const Derivation&) const = default;
};

struct Macro {
    Derivation derivation;
    std::int32_t offset = 0;  // from the token that gets the attribute
    bool absolute = false;    // or, as Wapiti counts: 1 is the first token of the sentence, -1 the last
};

struct TemplateLine {
    bool of_nodes = false, of_pairs = false;  // attributes of tokens, or of pairs of neighbouring tokens, or both
    std::vector<std::string> texts;           // what stands before each macro and behind the last: macros.size() + 1
    std::vector<Macro> macros;
};

enum class TemplateSyntax { automatic, crfpp, wapiti };

struct Template {
    static constexpr std::size_t most_macros = 100;  // of a line

    TemplateSyntax syntax = TemplateSyntax::crfpp;
    bool omit_outside = false;     // no attribute where a macro points past the sentence; else a string says so
    bool mark_ends = false;        // __BOS__ and __EOS__ on the first and last token
    bool has_transitions = false;  // a line for label pairs without a macro
    std::int32_t n_columns = 0;    // that a row must have
    std::vector<TemplateLine> lines;

    bool has_pairs() const noexcept;  // a line for label pairs with macros
};

// Throws std::invalid_argument, which names the line and what is wrong with it. The text must be valid UTF-8.
Template parse_template(std::string_view text, TemplateSyntax syntax);

// Where rows go: columns of one sentence after another, and how many belong to each of its tokens.
class RowSink {
  public:
    virtual ~RowSink() = default;
    // Room for that many columns, valid until finish().
    virtual std::int32_t* room(std::size_t most_columns) = 0;
    virtual void finish(std::span<const std::int32_t> row_sizes) = 0;
};

// Reads sentences. First the caller numbers their values with the vocabularies of values(), then add_sentence() does
// all the rest, for which no text is needed any more.
class TemplateReader {
  public:
    // How many distinct values and grams are remembered before trim() forgets them all.
    static constexpr std::size_t usual_keys = std::size_t{1} << 21;

    // With `grow`, attributes not met before become new columns of the vocabularies; without, they are counted and
    // left out. `pairs` may be null if the template has no attributes of pairs. The template must outlive the reader.
    TemplateReader(const Template& form, const Characters& characters, Vocabulary& nodes, Vocabulary* pairs, bool grow,
                   std::size_t most_keys = usual_keys);
    ~TemplateReader();
    TemplateReader(const TemplateReader&) = delete;
    TemplateReader& operator=(const TemplateReader&) = delete;

    // The columns of a row that the template reads, ascending, and the numbers of their values so far.
    std::span<const std::int32_t> columns() const noexcept;
    Vocabulary& values(std::size_t which) noexcept;

    // `ids` [columns().size()][length]: the number of each value. `pairs` may be null as above; its row for the first
    // token is empty, as no pair ends there.
    void add_sentence(const std::int32_t* ids, std::size_t length, RowSink& nodes, RowSink* pairs);

    // To be called now and then, when no numbers of values are in use: keeps the memory in bounds.
    void trim();

    std::int64_t n_unknown_nodes() const noexcept;
    std::int64_t n_unknown_pairs() const noexcept;

  private:
    class Engine;
    std::unique_ptr<Engine> engine_;
};

}  // namespace dualfield
