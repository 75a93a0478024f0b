// Rows of raw columns to attributes. Python objects are read under the interpreter lock, a block of sentences at a
// time, and only to number their values; all the rest of the work sees those numbers alone and is done without the
// lock.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

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
             "Offsets of the sentences, then rows of tokens and rows of pairs or None: indptr, indices, unknown ones.");
}

}  // namespace dualfield::bindings
