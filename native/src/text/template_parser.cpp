// CRF++ templates and Wapiti patterns, read line by line. The two differ in the letters that start a line, in comments,
// and in what stands for a token outside the sentence; macros are the same in both.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <utility>

#include "dualfield/text/templates.hpp"
#include "template_values.hpp"

namespace dualfield {

namespace {

constexpr std::int32_t farthest_offset = 1000, last_column = 9999, longest_affix = 1000;
constexpr std::string_view blanks = " \t\v\f\r";
constexpr std::string_view class_letters = "adlpsuwADLPSUW";

using Kind = Derivation::Kind;

struct MacroName {
    char letter;
    Kind kind;
    bool can_lower;  // the capital letter asks for the result in lower case
};
constexpr std::array<MacroName, 7> macro_names{{{'x', Kind::value, true},
                                                {'t', Kind::test, true},
                                                {'m', Kind::match, true},
                                                {'p', Kind::prefix, true},
                                                {'q', Kind::suffix, true},
                                                {'s', Kind::shape, false},
                                                {'c', Kind::outline, false}}};

std::string quoted(std::string_view text) {
    std::string result(1, '\'');
    return result.append(text).append(1, '\'');
}

struct SourceLine {
    std::size_t number;  // from 1
    std::string_view text;
};

[[noreturn]] void refuse(const SourceLine& line, const std::string& what) {
    throw std::invalid_argument("Line " + std::to_string(line.number) + " of the template, " + quoted(line.text) +
                                ": " + what);
}

std::string_view without_end_blanks(std::string_view text) {
    return text.substr(0, text.find_last_not_of(blanks) + 1);
}

class LineParser {
  public:
    explicit LineParser(const SourceLine& line) : line_(line), text_(line.text) {}

    TemplateLine parse() {
        TemplateLine result;
        result.texts.emplace_back();
        while (at_ < text_.size()) {
            if (text_[at_] == '%') {
                if (result.macros.size() == Template::most_macros)
                    fail("a line may have at most " + std::to_string(Template::most_macros) + " macros.");
                result.macros.push_back(macro());
                result.texts.emplace_back();
            } else {
                const std::size_t stop = std::min(text_.find('%', at_), text_.size());
                result.texts.back().assign(text_.substr(at_, stop - at_));
                at_ = stop;
            }
        }
        return result;
    }

  private:
    [[noreturn]] void fail(const std::string& what) const { refuse(line_, what); }

    bool accept(char wanted) {
        if (at_ >= text_.size() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }
    void expect(char wanted, const char* where) {
        if (!accept(wanted)) fail("expected " + quoted({&wanted, 1}) + " " + where + found());
    }
    std::string found() const {
        if (at_ >= text_.size()) return ", but the line ends.";
        std::size_t stop = at_ + 1;
        while (stop < text_.size() && (static_cast<unsigned char>(text_[stop]) & 0xc0) == 0x80) ++stop;
        return ". Got " + quoted(text_.substr(at_, stop - at_)) + " instead.";
    }
    void skip_blanks() { at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size()); }

    std::int32_t number(const char* what, std::int32_t low, std::int32_t high) {
        skip_blanks();
        if (at_ + 1 < text_.size() && text_[at_] == '+' && text_[at_ + 1] != '-') ++at_;
        std::int32_t value = 0;
        const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        if (error == std::errc::invalid_argument) fail(std::string("expected ") + what + ", a number" + found());
        if (error != std::errc() || value < low || value > high)
            fail(std::string(what) + " must be in [" + std::to_string(low) + ", " + std::to_string(high) + "].");
        at_ = static_cast<std::size_t>(stop - text_.data());
        skip_blanks();
        return value;
    }

    Macro macro() {
        ++at_;  // '%'
        Macro result;
        Derivation& derivation = result.derivation;
        const MacroName name = macro_name(derivation.lowered);
        derivation.kind = name.kind;
        ++at_;
        expect('[', "behind the name of a macro");
        if (at_ < text_.size() && text_[at_] == '*')
            fail("offsets that are read from a column, as in '[*', are not supported.");
        result.absolute = accept('@');
        result.offset = number("the offset", -farthest_offset, farthest_offset);
        expect(',', "between offset and column");
        derivation.column = number("the column", 0, last_column);
        if (name.kind == Kind::test || name.kind == Kind::match) {
            expect(',', "and a pattern in double quotes behind the column");
            derivation.pattern = pattern();
        } else if (name.kind == Kind::prefix || name.kind == Kind::suffix) {
            expect(',', "and a length behind the column");
            derivation.length = number("the length", 1, longest_affix);
        }
        expect(']', "at the end of a macro");
        return result;
    }

    MacroName macro_name(bool& lowered) const {
        const char letter = at_ < text_.size() ? text_[at_] : '\0';
        for (const MacroName& name : macro_names) {
            const char capital = static_cast<char>(name.letter - 'a' + 'A');
            lowered = name.can_lower && letter == capital;
            if (letter == name.letter || lowered) return name;
        }
        fail("a '%' must start one of the macros %x %X %t %T %m %M %s %c %p %P %q %Q" + found());
    }

    Pattern pattern() {
        skip_blanks();
        expect('"', "before a pattern");
        const std::size_t start = at_;
        while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
        if (at_ >= text_.size()) fail("the pattern has no closing double quote.");
        const std::u32string source = decoded(text_.substr(start, at_ - start));
        ++at_;
        skip_blanks();
        return compiled(source);
    }

    Pattern compiled(std::u32string_view source) const {
        Pattern result;
        if (!source.empty() && source.front() == U'^') {
            result.from_start = true;
            source.remove_prefix(1);
        }
        while (!source.empty()) {
            if (source == U"$") {
                result.to_end = true;
                break;
            }
            if (source.front() == U'*' || source.front() == U'?')
                fail("the pattern has a '*' or '?' with nothing to repeat; write \\* or \\? for the character.");
            result.items.push_back(item(source));
        }
        return result;
    }

    // Takes one item off the front; escapes are complete, as the closing quote was found behind them.
    static Pattern::Item item(std::u32string_view& source) {
        Pattern::Item result{source.front() == U'.' ? '.' : 'c', Pattern::Repeat::once, source.front()};
        if (source.front() == U'\\') {
            source.remove_prefix(1);
            result.character = source.front();
            const bool is_class = source.front() < 0x80 &&
                                  class_letters.find(static_cast<char>(source.front())) != std::string_view::npos;
            if (is_class) result.kind = static_cast<char>(source.front());
        }
        source.remove_prefix(1);
        if (!source.empty() && (source.front() == U'*' || source.front() == U'?')) {
            result.repeat = source.front() == U'*' ? Pattern::Repeat::any : Pattern::Repeat::optional;
            source.remove_prefix(1);
        }
        return result;
    }

    const SourceLine line_;
    const std::string_view text_;
    std::size_t at_ = 0;
};

std::vector<SourceLine> split_lines(std::string_view text) {
    std::vector<SourceLine> lines;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t stop = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, stop);
        if (line.ends_with('\r')) line.remove_suffix(1);
        const std::size_t first = line.find_first_not_of(blanks);
        if (first != std::string_view::npos && line[first] != '#') lines.push_back({number, line});
        text.remove_prefix(std::min(stop + 1, text.size()));
    }
    return lines;
}

// Only Wapiti starts lines with small letters or a star, and has other macros than %x.
bool looks_like_wapiti(const SourceLine& line) {
    if (std::string_view("ub*").find(line.text.front()) != std::string_view::npos) return true;
    constexpr std::array<std::string_view, 5> macros{"%X[", "%t[", "%T[", "%m[", "%M["};
    return std::any_of(macros.begin(), macros.end(),
                       [&line](std::string_view macro) { return line.text.find(macro) != std::string_view::npos; });
}

struct Switches {
    bool omit_outside = false, mark_ends = false, bare_names = false;
};

void turn_on(const SourceLine& line, Switches& switches) {
    const std::string_view name = without_end_blanks(line.text.substr(0, line.text.find('#')));
    if (name == "!omit-outside")
        switches.omit_outside = true;
    else if (name == "!mark-ends")
        switches.mark_ends = true;
    else if (name == "!bare-names")
        switches.bare_names = true;
    else
        refuse(line, "a line that starts with '!' must be one of !omit-outside, !mark-ends, !bare-names.");
}

// What stands before the first colon only tells lines apart.
void drop_name(const SourceLine& source, TemplateLine& line) {
    const std::size_t colon = line.texts.front().find(':');
    if (colon == std::string::npos)
        refuse(source, "with !bare-names a ':' must stand before the first macro; the attribute starts behind it.");
    line.texts.front().erase(0, colon + 1);
}

std::optional<TemplateLine> parse_line(SourceLine source, TemplateSyntax syntax, bool bare_names, bool& transitions) {
    if (syntax == TemplateSyntax::wapiti)
        source.text = without_end_blanks(source.text.substr(0, source.text.find('#')));
    if (source.text.empty()) return std::nullopt;
    const char first = source.text.front();
    const bool wapiti = syntax == TemplateSyntax::wapiti;
    const bool both = wapiti && first == '*';
    const bool nodes = both || first == 'U' || (wapiti && first == 'u');
    const bool pairs = both || first == 'B' || (wapiti && first == 'b');
    if (!nodes && !pairs)
        refuse(source, wapiti ? "a line of a Wapiti pattern must start with 'u', 'b' or '*', or with '#' as a comment."
                              : "a line of a CRF++ template must start with 'U' or 'B', or with '#' as a comment.");
    TemplateLine line = LineParser(source).parse();
    // Without a macro there is one attribute for all pairs, which is to say plain transitions.
    const bool plain = line.macros.empty();
    transitions |= pairs && plain;
    line.of_nodes = nodes;
    line.of_pairs = pairs && !plain;
    if (!line.of_nodes && !line.of_pairs) return std::nullopt;
    if (wapiti && !both) line.texts.front().front() = nodes ? 'u' : 'b';
    if (bare_names) drop_name(source, line);
    return line;
}

}  // namespace

bool Template::has_pairs() const noexcept {
    return std::any_of(lines.begin(), lines.end(), [](const TemplateLine& line) { return line.of_pairs; });
}

Template parse_template(std::string_view text, TemplateSyntax syntax) {
    const std::vector<SourceLine> sources = split_lines(text);
    if (syntax == TemplateSyntax::automatic)
        syntax = std::any_of(sources.begin(), sources.end(), looks_like_wapiti) ? TemplateSyntax::wapiti
                                                                                : TemplateSyntax::crfpp;
    Switches switches;
    for (const SourceLine& source : sources)
        if (source.text.front() == '!') turn_on(source, switches);
    Template result;
    result.syntax = syntax;
    result.omit_outside = switches.omit_outside;
    result.mark_ends = switches.mark_ends;
    for (const SourceLine& source : sources) {
        if (source.text.front() == '!') continue;
        std::optional<TemplateLine> line = parse_line(source, syntax, switches.bare_names, result.has_transitions);
        if (!line) continue;
        for (const Macro& macro : line->macros)
            result.n_columns = std::max(result.n_columns, macro.derivation.column + 1);
        result.lines.push_back(std::move(*line));
    }
    if (result.lines.empty() && !result.has_transitions && !result.mark_ends)
        throw std::invalid_argument("The template has no line that makes an attribute.");
    return result;
}

}  // namespace dualfield
