// Rows of raw columns to attributes. Python objects are read under the interpreter lock, a block of sentences at a
// time, and only to number their values; all the rest of the work sees those numbers alone and is done without the
// lock.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "dualfield/text/column_lines.hpp"
#include "dualfield/text/templates.hpp"
#include "dualfield/text/vocabulary.hpp"
#include "register.hpp"
#include "value_reader.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dualfield::bindings {

namespace {

constexpr std::size_t usual_block = std::size_t{1} << 17;  // tokens that are read before the lock is released

// Python's own tables.
#ifndef Py_LIMITED_API
unsigned classes_of(char32_t character) {
    const auto point = static_cast<Py_UCS4>(character);
    const bool is_space = Py_UNICODE_ISSPACE(point) != 0;
    return (Py_UNICODE_ISALPHA(point) != 0 ? Characters::letter : 0) |
           (Py_UNICODE_ISDECIMAL(point) != 0 ? Characters::digit : 0) |
           (Py_UNICODE_ISLOWER(point) != 0 ? Characters::lower : 0) |
           (Py_UNICODE_ISUPPER(point) != 0 ? Characters::upper : 0) | (is_space ? Characters::space : 0) |
           (!is_space && Py_UNICODE_ISPRINTABLE(point) != 0 ? Characters::graphic : 0);
}
char32_t lowered(char32_t character) {
    return Py_UNICODE_TOLOWER(static_cast<Py_UCS4>(character));
}
#else
// Read through the methods of a str of one character, under the lock. It is asked for what is not ASCII, once for each
// distinct value.
nb::object as_str(char32_t character) {
    return nb::steal(PyUnicode_FromFormat("%c", static_cast<int>(character)));
}
unsigned classes_of(char32_t character) {
    const nb::gil_scoped_acquire lock;
    const nb::object text = as_str(character);
    const auto is = [&](const char* method) { return nb::cast<bool>(text.attr(method)()); };
    const bool is_space = is("isspace");
    return (is("isalpha") ? Characters::letter : 0) | (is("isdecimal") ? Characters::digit : 0) |
           (is("islower") ? Characters::lower : 0) | (is("isupper") ? Characters::upper : 0) |
           (is_space ? Characters::space : 0) | (!is_space && is("isprintable") ? Characters::graphic : 0);
}
char32_t lowered(char32_t character) {
    const nb::gil_scoped_acquire lock;
    return PyUnicode_ReadChar(as_str(character).attr("lower")().ptr(), 0);
}
#endif

using Reading = std::tuple<Vector<std::int64_t>, Rows, std::optional<Rows>>;

Reading read(const Template& form, Objects sentences, Opener opened, Vocabulary& nodes, Vocabulary* pairs, bool grow,
             const std::string& name, std::size_t block, std::size_t most_keys) {
    if (form.has_pairs() && pairs == nullptr) throw std::invalid_argument("A vocabulary of pairs is missing.");
    TemplateReader reader(form, {&classes_of, &lowered}, nodes, pairs, grow, most_keys);
    std::vector<Vocabulary*> columns;
    for (std::size_t which = 0; which < reader.columns().size(); ++which) columns.push_back(&reader.values(which));
    ValueReader values(reader.columns(), std::move(columns), form.n_columns, opened, name, "the template");
    SparseRows node_rows, pair_rows;
    GrowingArray<std::int64_t> ends;
    ends.push(0);
    std::vector<std::int32_t> ids;
    std::vector<std::size_t> lengths;  // of the sentences in ids
    std::size_t n_tokens = 0, n_waiting = 0;
    const auto finish_block = [&] {
        const nb::gil_scoped_release unlocked;
        const std::int32_t* at = ids.data();
        for (const std::size_t length : lengths) {
            reader.add_sentence(at, length, node_rows, pairs != nullptr ? &pair_rows : nullptr);
            at += length * reader.columns().size();
        }
        reader.trim();
        ids.clear();
        lengths.clear();
        n_waiting = 0;
    };
    Py_ssize_t example = 0;
    for (nb::handle sentence : sentences) {
        const std::size_t length = values.read(sentence, example++, ids);
        lengths.push_back(length);
        n_tokens += length;
        n_waiting += length;
        ends.push(static_cast<std::int64_t>(n_tokens));
        if (n_waiting < block) continue;
        finish_block();
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    finish_block();
    std::optional<Rows> of_pairs;
    if (pairs != nullptr) of_pairs = pair_rows.finished(reader.n_unknown_pairs());
    return {hand_over(ends), node_rows.finished(reader.n_unknown_nodes()), of_pairs};
}

using ColumnReading =
    std::tuple<Vector<std::int64_t>, Vector<std::int64_t>, Vector<std::int32_t>, Rows, std::optional<Rows>>;

std::string counted_columns(std::size_t count) {
    return std::to_string(count) + (count == 1 ? " column" : " columns");
}

// Sentences of a text in columns, whose features are those that the template counts from 0. Nothing in it is a Python
// object, so that the lock is released throughout. Errors name the line.
ColumnReading read_columns(const Template& form, nb::bytes text, const std::string& separator,
                           const std::vector<std::int32_t>& features, std::int32_t label, std::size_t n_columns,
                           std::size_t first_row, std::size_t first_line, Vocabulary& labels, Vocabulary& nodes,
                           Vocabulary* pairs) {
    if (form.has_pairs() && pairs == nullptr) throw std::invalid_argument("A vocabulary of pairs is missing.");
    if (static_cast<std::size_t>(form.n_columns) > features.size())
        throw std::invalid_argument("The template reads " + counted_columns(static_cast<std::size_t>(form.n_columns)) +
                                    ". Got " + std::to_string(features.size()) + ".");
    for (const std::int32_t column : features)
        if (column < 0 || static_cast<std::size_t>(column) >= n_columns)
            throw std::invalid_argument("There is no column " + std::to_string(column) + ".");
    if (label < 0 || static_cast<std::size_t>(label) >= n_columns)
        throw std::invalid_argument("There is no column " + std::to_string(label) + ".");
    TemplateReader reader(form, {&classes_of, &lowered}, nodes, pairs, true);
    const std::size_t n_read = reader.columns().size();
    std::vector<std::size_t> read;  // columns of the text
    for (const std::int32_t column : reader.columns())
        read.push_back(static_cast<std::size_t>(features[static_cast<std::size_t>(column)]));
    SparseRows node_rows, pair_rows;
    GrowingArray<std::int64_t> ends, lines;
    GrowingArray<std::int32_t> codes;
    ends.push(0);
    std::vector<std::int32_t> by_token, by_column;  // numbers of the values of a sentence
    std::vector<std::string_view> columns;
    std::size_t length = 0, n_tokens = 0, untrimmed = 0;
    ColumnLines input({text.c_str(), text.size()}, separator.empty() ? '\0' : separator[0], first_line);
    const auto finish_sentence = [&] {
        if (length == 0) return;
        by_column.resize(by_token.size());
        for (std::size_t which = 0; which < n_read; ++which)
            for (std::size_t t = 0; t < length; ++t) by_column[which * length + t] = by_token[t * n_read + which];
        reader.add_sentence(by_column.data(), length, node_rows, pairs != nullptr ? &pair_rows : nullptr);
        n_tokens += length;
        untrimmed += length;
        ends.push(static_cast<std::int64_t>(n_tokens));
        by_token.clear();
        length = 0;
        if (untrimmed < usual_block) return;
        reader.trim();
        untrimmed = 0;
    };
    {
        const nb::gil_scoped_release unlocked;
        for (ColumnLines::Kind kind; (kind = input.next(columns)) != ColumnLines::Kind::end;) {
            if (kind == ColumnLines::Kind::boundary) {
                finish_sentence();
                continue;
            }
            if (columns.size() != n_columns)
                throw std::invalid_argument("line " + std::to_string(input.line()) + ": has " +
                                            counted_columns(columns.size()) + "; the first row, in line " +
                                            std::to_string(first_row) + ", has " + std::to_string(n_columns) + ".");
            if (length++ == 0) lines.push(static_cast<std::int64_t>(input.line()));
            for (std::size_t which = 0; which < n_read; ++which)
                by_token.push_back(reader.values(which).insert(columns[read[which]]));
            codes.push(labels.insert(columns[static_cast<std::size_t>(label)]));
        }
        finish_sentence();
    }
    std::optional<Rows> of_pairs;
    if (pairs != nullptr) of_pairs = pair_rows.finished(0);
    return {hand_over(ends), hand_over(lines), hand_over(codes), node_rows.finished(0), of_pairs};
}

TemplateSyntax syntax_of(const std::string& name) {
    if (name == "auto") return TemplateSyntax::automatic;
    if (name == "crf++") return TemplateSyntax::crfpp;
    if (name == "wapiti") return TemplateSyntax::wapiti;
    throw std::invalid_argument("syntax must be 'auto', 'crf++' or 'wapiti'.");
}

}  // namespace

void register_templates(nb::module_& module) {
    const auto parse = [](Template* self, const std::string& text, const std::string& syntax) {
        new (self) Template(parse_template(text, syntax_of(syntax)));
    };
    const auto syntax = [](const Template& form) { return form.syntax == TemplateSyntax::wapiti ? "wapiti" : "crf++"; };
    nb::class_<Template>(module, "Template", "Lines with macros that turn rows of raw columns into attributes.")
        .def("__init__", parse, "text"_a, "syntax"_a, "ValueError that names the line unless the text is sound.")
        .def_prop_ro("syntax", syntax)
        .def_ro("n_columns", &Template::n_columns, "Columns that a row must have.")
        .def_ro("has_transitions", &Template::has_transitions)
        .def_prop_ro("has_pairs", &Template::has_pairs)
        .def("read", &read, "sentences"_a, "opened"_a, "nodes"_a, "pairs"_a.none(), "grow"_a, "name"_a,
             "block"_a = usual_block, "most_keys"_a = TemplateReader::usual_keys,
             "Offsets of the sentences, then rows of tokens and rows of pairs or None: indptr, indices, unknown ones.")
        .def("read_columns", &read_columns, "text"_a, "separator"_a, "features"_a, "label"_a, "n_columns"_a,
             "first_row"_a, "first_line"_a, "labels"_a, "nodes"_a, "pairs"_a.none(),
             "Sentences of UTF-8 text in columns: offsets, line of the first token of each, codes in the order of "
             "labels, rows of tokens and rows of pairs or None.");
}

}  // namespace dualfield::bindings
