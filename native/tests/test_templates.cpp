#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "dualfield/text/templates.hpp"
#include "dualfield/text/vocabulary.hpp"

using dualfield::ascii_characters;
using dualfield::Characters;
using dualfield::parse_template;
using dualfield::RowSink;
using dualfield::Template;
using dualfield::TemplateReader;
using dualfield::TemplateSyntax;
using dualfield::Vocabulary;

namespace {

using Strings = std::vector<std::string>;
using Sentence = std::vector<Strings>;  // [length][columns]

// Rows as lists of columns.
class Rows : public RowSink {
  public:
    std::vector<std::vector<std::int32_t>> rows;

    std::int32_t* room(std::size_t most_columns) override {
        room_.assign(most_columns, -7);
        return room_.data();
    }
    void finish(std::span<const std::int32_t> row_sizes) override {
        auto at = room_.begin();
        for (const std::int32_t size : row_sizes) {
            rows.emplace_back(at, at + size);
            at += size;
        }
    }

  private:
    std::vector<std::int32_t> room_;
};

void add(TemplateReader& reader, const Sentence& sentence, Rows& nodes, Rows* pairs = nullptr) {
    std::vector<std::int32_t> ids;
    for (std::size_t which = 0; which < reader.columns().size(); ++which)
        for (const Strings& row : sentence)
            ids.push_back(reader.values(which).insert(row[static_cast<std::size_t>(reader.columns()[which])]));
    reader.add_sentence(ids.data(), sentence.size(), nodes, pairs);
}

std::vector<Strings> spelled(const Rows& rows, const Vocabulary& vocabulary) {
    std::vector<Strings> result;
    for (const auto& row : rows.rows) {
        result.emplace_back();
        for (const std::int32_t column : row) result.back().emplace_back(vocabulary.attribute(column));
    }
    return result;
}

Template parsed(std::string_view text, TemplateSyntax syntax = TemplateSyntax::automatic) {
    return parse_template(text, syntax);
}

// The attributes of each token of one sentence.
std::vector<Strings> attributes(std::string_view text, const Sentence& sentence,
                                TemplateSyntax syntax = TemplateSyntax::automatic,
                                const Characters& characters = ascii_characters()) {
    const Template form = parsed(text, syntax);
    Vocabulary vocabulary, of_pairs;
    TemplateReader reader(form, characters, vocabulary, &of_pairs, true);
    Rows rows;
    add(reader, sentence, rows);
    return spelled(rows, vocabulary);
}

// What a macro makes of one value.
std::string made(const std::string& macro, const std::string& value) {
    return attributes("!bare-names\nu:" + macro, {{value}}).at(0).at(0);
}

std::string refusal(std::string_view text, TemplateSyntax syntax = TemplateSyntax::automatic) {
    try {
        static_cast<void>(parse_template(text, syntax));
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

const Sentence letters{{"a"}, {"b"}, {"c"}};

}  // namespace

TEST(templates_read_crfpp) {
    const auto rows = attributes("# comment\n\nU00:%x[-1,0]/%x[0,1]\r\nU1%x[2,0]x\nB\n", {{"a", "A"}, {"b", "B"}});
    CHECK((rows == std::vector<Strings>{{"U00:_B-1/A", "U1_B+1x"}, {"U00:a/B", "U1_B+2x"}}));
    CHECK(parsed("U:%x[0,3]\nB").has_transitions);
    CHECK(!parsed("U:%x[0,3]\nB").has_pairs());
    CHECK(parsed("U:%x[0,3]\nB").n_columns == 4);
    CHECK(!parsed("B:%x[0,0]").has_transitions);
    CHECK(parsed("B:%x[0,0]").has_pairs());
}

TEST(templates_read_wapiti) {
    const auto rows = attributes("U:%x[-5,0] # comment\n*%X[0,0]\nb", {{"Ab"}});
    CHECK((rows == std::vector<Strings>{{"u:_x-#", "*ab"}}));
    CHECK(parsed("*").has_transitions);
    CHECK(parsed("*").lines.size() == 1);
    CHECK(parsed("*:%x[0,0]").has_pairs());
    CHECK(parsed("  # comment\nu").syntax == TemplateSyntax::wapiti);
    CHECK(parsed("U:%m[0,0,\"a\"]").syntax == TemplateSyntax::wapiti);
    CHECK(parsed("U:%x[0,0]").syntax == TemplateSyntax::crfpp);
    CHECK(parsed("U:%x[0,0]", TemplateSyntax::wapiti).syntax == TemplateSyntax::wapiti);
}

TEST(templates_read_absolute_offsets) {
    const auto rows = attributes("u:%x[@1,0]%x[@-1,0]%x[0,0]%x[@0,0]", letters);
    CHECK((rows == std::vector<Strings>{{"u:aca_x-1"}, {"u:acb_x-1"}, {"u:acc_x-1"}}));
    const auto omitted = attributes("!omit-outside\nu1%x[@3,0]\nu2%x[@-4,0]\nu3%x[@0,0]", letters);
    CHECK((omitted == std::vector<Strings>{{"u1c"}, {"u1c"}, {"u1c"}}));
    CHECK((attributes("u:%x[@3,0]|%x[@-4,0]", {{"a"}}) == std::vector<Strings>{{"u:_x+2|_x-3"}}));
}

TEST(templates_leave_out_what_reaches_past_the_sentence) {
    const auto rows = attributes("!omit-outside\n!mark-ends\n!bare-names\nU:1%x[-1,0]%x[0,0]\nU:2%x[2,0]", letters);
    CHECK((rows == std::vector<Strings>{{"2c", "__BOS__"}, {"1ab"}, {"1bc", "__EOS__"}}));
    CHECK((attributes("!mark-ends\n!omit-outside\nU%x[-1,0]%x[1,0]", {{"a"}}) ==
           std::vector<Strings>{{"__BOS__", "__EOS__"}}));
}

TEST(templates_share_what_lines_have_in_common) {
    // Neighbouring pairs, in both orders and at several shifts, and a triple that goes on from a pair.
    const auto rows =
        attributes("U1%x[-1,0]%x[0,0]\nU2%x[0,0]%x[1,0]\nU3%x[0,0]%x[-1,0]\nU4%x[-2,0]%x[-1,0]%x[0,0]", letters);
    CHECK((rows[0] == Strings{"U1_B-1a", "U2ab", "U3a_B-1", "U4_B-2_B-1a"}));
    CHECK((rows[1] == Strings{"U1ab", "U2bc", "U3ba", "U4_B-1ab"}));
    CHECK((rows[2] == Strings{"U1bc", "U2c_B+1", "U3cb", "U4abc"}));
}

TEST(templates_give_pairs_a_vocabulary_of_their_own) {
    const Template form = parsed("*%x[0,0]\nu:%x[1,0]\nb:%x[-1,0]%x[0,0]");
    Vocabulary of_nodes, of_pairs;
    TemplateReader reader(form, ascii_characters(), of_nodes, &of_pairs, true);
    Rows nodes, pairs;
    add(reader, letters, nodes, &pairs);
    add(reader, {}, nodes, &pairs);
    add(reader, {{"b"}}, nodes, &pairs);
    CHECK((spelled(nodes, of_nodes) ==
           std::vector<Strings>{{"*a", "u:b"}, {"*b", "u:c"}, {"*c", "u:_x+1"}, {"*b", "u:_x+1"}}));
    CHECK((spelled(pairs, of_pairs) == std::vector<Strings>{{}, {"*b", "b:ab"}, {"*c", "b:bc"}, {}}));
}

TEST(templates_leave_out_and_count_what_is_unknown) {
    const Template form = parsed("U:%x[0,0]\nU:%x[1,0]");
    Vocabulary vocabulary;
    vocabulary.insert("U:c");
    vocabulary.insert("U:a");
    TemplateReader reader(form, ascii_characters(), vocabulary, nullptr, false);
    Rows rows;
    add(reader, letters, rows);
    add(reader, letters, rows);
    const std::vector<std::vector<std::int32_t>> once{{1}, {0}, {0}};
    CHECK((rows.rows == std::vector<std::vector<std::int32_t>>{once[0], once[1], once[2], once[0], once[1], once[2]}));
    CHECK(reader.n_unknown_nodes() == 6);
    CHECK(reader.n_unknown_pairs() == 0);
    CHECK(vocabulary.size() == 2);
}

TEST(templates_give_equal_strings_one_column) {
    // Different lines, and different grams of one line, that spell the same.
    const Template form = parsed("U:%x[0,0]\nU:%x[1,0]\nU:%x[0,0]|%x[1,0]");
    Vocabulary vocabulary;
    TemplateReader reader(form, ascii_characters(), vocabulary, nullptr, true);
    Rows rows;
    add(reader, {{"a|b"}, {"c"}}, rows);
    add(reader, {{"a"}, {"b|c"}}, rows);
    CHECK(rows.rows[0][2] == rows.rows[2][2]);
    CHECK(rows.rows[0][1] == rows.rows[1][0]);
}

TEST(templates_forget_without_a_trace) {
    const Template form = parsed("!mark-ends\nu:%x[0,0]|%X[1,0]|%x[2,1]\nb:%q[0,1,1]");
    Vocabulary vocabulary, small_vocabulary, of_pairs, small_of_pairs;
    TemplateReader reader(form, ascii_characters(), vocabulary, &of_pairs, true);
    TemplateReader forgetful(form, ascii_characters(), small_vocabulary, &small_of_pairs, true, 5);
    Rows rows, same, pairs, same_pairs;
    std::uint32_t state = 1;
    for (int i = 0; i < 200; ++i) {
        Sentence sentence;
        for (std::uint32_t n = state % 7; n > 0; --n) {
            state = state * 1664525 + 1013904223;
            sentence.push_back(
                {std::string(1, static_cast<char>('A' + (state >> 16) % 20)), std::to_string((state >> 24) % 5)});
        }
        state = state * 1664525 + 1013904223;
        add(reader, sentence, rows, &pairs);
        add(forgetful, sentence, same, &same_pairs);
        forgetful.trim();
    }
    CHECK(vocabulary.size() > 100);
    CHECK(vocabulary == small_vocabulary);
    CHECK(of_pairs == small_of_pairs);
    CHECK(rows.rows == same.rows);
    CHECK(pairs.rows == same_pairs.rows);
}

TEST(templates_match_patterns) {
    const auto match = [](const std::string& pattern, const std::string& value) {
        return made("%m[0,0,\"" + pattern + "\"]", value);
    };
    CHECK(match("\\\\", "a\\b") == "\\");  // the pattern is an escaped backslash
    CHECK(match("\\d\\d*$", "ab12x345") == "345");
    CHECK(match("\\d*", "ab") == "");
    CHECK(match("^\\u\\l*", "Abc") == "A");  // '*' takes as few as it can
    CHECK(match("^\\u\\l*$", "Abc") == "Abc");
    CHECK(match("b?c", "abc") == "bc");  // '?' takes its character if it can
    CHECK(match("a?ab", "ab") == "ab");
    CHECK(match("\\p", "x-y") == "-");
    CHECK(match("\\W\\S", "ab !") == " !");
    CHECK(match(".\\.", "a.b.") == "a.");
    CHECK(match("a+", "aa+") == "a+");  // no repetition in this dialect
    CHECK(match("\\\"", "a\"") == "\"");
    CHECK(match("$a^", "$a^") == "$a^");  // anchors only at the ends
    CHECK(made("%t[0,0,\"^\\u\"]", "Abc") == "true");
    CHECK(made("%t[0,0,\"^\\u\"]", "abc") == "false");
    CHECK(made("%t[0,0,\"\"]", "") == "true");
    CHECK(made("%M[0,0,\"\\u.\"]", "aBC") == "bc");
}

TEST(templates_match_long_values_in_reasonable_time) {
    std::string pattern;
    for (int i = 0; i < 30; ++i) pattern += "a*";
    CHECK(made("%t[0,0,\"^" + pattern + "b$\"]", std::string(2000, 'a')) == "false");
}

TEST(templates_cut_and_draw_words) {
    CHECK(made("%p[0,0,2]", "abc") == "ab");
    CHECK(made("%p[0,0,9]", "abc") == "abc");
    CHECK(made("%q[0,0,2]", "abc") == "bc");
    CHECK(made("%Q[0,0,2]", "aBC") == "bc");
    CHECK(made("%p[0,0,2]", "\u00e4\u20ac\U0001f600") == "\u00e4\u20ac");
    CHECK(made("%q[0,0,2]", "\u00e4\u20ac\U0001f600") == "\u20ac\U0001f600");
    CHECK(made("%p[0,0,1]", "") == "");
    CHECK(made("%s[0,0]", "McDonald-99.5%") == "XxXxxxxx-dd.d%");
    CHECK(made("%c[0,0]", "McDonald-99...") == "XxXx-d.");
    CHECK(made("%X[0,0]", "\u00c4B") == "\u00c4b");  // ASCII only, unless the caller knows more
    const Characters capital{[](char32_t) { return Characters::letter | Characters::upper; },
                             [](char32_t character) -> char32_t { return character + 32; }};
    CHECK((attributes("U:%X[0,0]|%s[0,0]", {{"\u00c4B"}}, TemplateSyntax::crfpp, capital) ==
           std::vector<Strings>{{"U:\u00e4b|XX"}}));
    // Strings for the outside are not cut.
    CHECK((attributes("U:%s[-1,0]%p[-1,0,1]%T[1,0,\"B\"]", {{"a"}}, TemplateSyntax::crfpp) ==
           std::vector<Strings>{{"U:_B-1_B-1true"}}));
}

TEST(templates_refuse_what_is_wrong_and_name_the_line) {
    const auto has = [](const std::string& text, std::string_view part) {
        return text.find(part) != std::string::npos;
    };
    CHECK(has(refusal("U:%x[0,0]\n\nU:%y[0,0]"), "Line 3 of the template, 'U:%y[0,0]': a '%' must start one of"));
    CHECK(has(refusal("U:%x[0,0]\n\nU:%y[0,0]"), "Got 'y' instead."));
    CHECK(has(refusal("U:%\u00e4"), "Got '\u00e4' instead."));
    CHECK(has(refusal("U:%"), "but the line ends."));
    CHECK(has(refusal("U:%S[0,0]"), "a '%' must start one of"));
    CHECK(has(refusal("X:%x[0,0]"), "must start with 'U' or 'B'"));
    CHECK(has(refusal("u\nX:%x[0,0]"), "must start with 'u', 'b' or '*'"));
    CHECK(has(refusal("u:%x[0,0]", TemplateSyntax::crfpp), "must start with 'U' or 'B'"));
    CHECK(has(refusal("U:%x0,0]"), "expected '[' behind the name of a macro. Got '0' instead."));
    CHECK(has(refusal("U:%x[a,0]"), "expected the offset, a number. Got 'a' instead."));
    CHECK(has(refusal("U:%x[+-1,0]"), "expected the offset, a number."));
    CHECK(has(refusal("U:%x[0]"), "expected ',' between offset and column."));
    CHECK(has(refusal("U:%x[0,-1]"), "the column must be in [0, 9999]."));
    CHECK(has(refusal("U:%x[99999999999,0]"), "the offset must be in [-1000, 1000]."));
    CHECK(has(refusal("U:%x[0,0"), "expected ']' at the end of a macro, but the line ends."));
    CHECK(has(refusal("U:%p[0,0]"), "expected ',' and a length"));
    CHECK(has(refusal("U:%p[0,0,0]"), "the length must be in [1, 1000]."));
    CHECK(has(refusal("U:%t[0,0]"), "expected ',' and a pattern in double quotes"));
    CHECK(has(refusal("U:%t[0,0,a]"), "expected '\"' before a pattern."));
    CHECK(has(refusal("U:%t[0,0,\"a\\\"]"), "the pattern has no closing double quote."));
    CHECK(has(refusal("U:%t[0,0,\"*\"]"), "with nothing to repeat"));
    CHECK(has(refusal("U:%t[0,0,\"a**\"]"), "with nothing to repeat"));
    CHECK(has(refusal("U:%x[*1,0]"), "are not supported."));
    CHECK(has(refusal("!omit\nU"), "Line 1 of the template, '!omit': a line that starts with '!'"));
    CHECK(has(refusal("!bare-names\nU%x[0,0]:"), "a ':' must stand before the first macro"));
    CHECK(has(refusal(""), "The template has no line that makes an attribute."));
    CHECK(has(refusal("# nothing\n!omit-outside"), "The template has no line that makes an attribute."));
    std::string many = "U:";
    for (int i = 0; i < 101; ++i) many += "%x[0,0]";
    CHECK(has(refusal(many), "at most 100 macros."));
}

TEST(templates_accept_blanks_and_signs_in_numbers) {
    CHECK((attributes("U:%x[ +1 , 0 ]", letters) == std::vector<Strings>{{"U:b"}, {"U:c"}, {"U:_B+1"}}));
}
