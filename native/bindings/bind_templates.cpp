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

#include "attribute_reader.hpp"
#include "dualfield/text/templates.hpp"
#include "dualfield/text/vocabulary.hpp"
#include "register.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dualfield::bindings {

namespace {

constexpr std::size_t usual_block = std::size_t{1} << 17;  // tokens that are read before the lock is released

using Objects = nb::typed<nb::iterable, nb::object>;
using Opener = nb::typed<nb::callable, nb::object(nb::object)>;

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

class SparseRows : public RowSink {
  public:
    SparseRows() { indptr.push(0); }
    std::int32_t* room(std::size_t most_columns) override { return indices.room(most_columns); }
    void finish(std::span<const std::int32_t> row_sizes) override {
        auto end = static_cast<std::int64_t>(indices.size());
        std::int64_t* ends = indptr.room(row_sizes.size());
        for (const std::int32_t size : row_sizes) *ends++ = end += size;
        indptr.advance(row_sizes.size());
        indices.advance(static_cast<std::size_t>(end) - indices.size());
    }

    GrowingArray<std::int64_t> indptr;   // [rows + 1]
    GrowingArray<std::int32_t> indices;  // [nnz]
};

std::string counted(Py_ssize_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Numbers the values of sentences, and says what is wrong with them.
class ValueReader {
  public:
    // `opened` makes a list of a sentence that is neither a list nor a tuple.
    ValueReader(TemplateReader& reader, Py_ssize_t n_columns, Opener opened, const std::string& name)
        : reader_(reader), columns_(reader.columns()), n_columns_(n_columns), opened_(opened), name_(name) {}

    // Appends the numbers of the values, [columns][length], and returns the length.
    std::size_t read(nb::handle sentence, Py_ssize_t example, std::vector<std::int32_t>& ids) {
        example_ = example;
        position_ = -1;
        nb::object held = nb::borrow(sentence);
        if (!PyList_Check(held.ptr()) && !PyTuple_Check(held.ptr())) held = list_of(sentence);
        const Members rows(held.ptr());
        const Py_ssize_t length = rows.size();
        gather(rows);
        take_texts();
        number(static_cast<std::size_t>(length), ids);
        return static_cast<std::size_t>(length);
    }

  private:
    struct Text {
        const char* bytes;
        std::size_t length;
        std::uint64_t hash;
    };

    std::string place() const {
        std::string text = name_ + "[" + std::to_string(example_) + "]";
        return position_ < 0 ? text : text + "[" + std::to_string(position_) + "]";
    }
    [[noreturn]] void refuse_type(const std::string& what) const { throw nb::type_error((place() + what).c_str()); }
    [[noreturn]] void refuse_value(const std::string& what) const { throw nb::value_error((place() + what).c_str()); }
    std::string row_kind() const {
        const std::string many =
            "a list or tuple of " + (n_columns_ > 1 ? std::to_string(n_columns_) + " " : "") + "str";
        return n_columns_ > 1 ? many : "a str, or " + many;
    }

    nb::object list_of(nb::handle sentence) const {
        const bool wrong = PyUnicode_Check(sentence.ptr()) || PyBytes_Check(sentence.ptr()) ||
                           PyDict_Check(sentence.ptr()) || PyAnySet_Check(sentence.ptr());
        nb::object list = wrong ? nb::borrow(sentence) : opened_(sentence);
        if (PyList_Check(list.ptr()) || PyTuple_Check(list.ptr())) return list;
        std::string message = " must be a list of rows, each " + row_kind() + ". Got ";
        message.append(type_name(sentence.ptr())).append(" instead");
        message += wrong ? ": is a level of lists missing? One sentence is passed as [sentence]." : ".";
        refuse_type(message);
    }

    // Stage one of three, none of which runs Python code, so that borrowed references hold: the objects, prefetched.
    void gather(const Members& rows) {
        constexpr Py_ssize_t rows_ahead = 4;
        const Py_ssize_t length = rows.size();
        objects_.clear();
        for (Py_ssize_t t = 0; t < length; ++t) {
            if (t + 2 * rows_ahead < length) prefetch_line(rows[t + 2 * rows_ahead]);
            if (t + rows_ahead < length) Members::prefetch(rows[t + rows_ahead]);
            position_ = t;
            PyObject* const row = rows[t];
            if (PyList_Check(row) || PyTuple_Check(row)) {
                const Members members(row);
                check_width(members.size());
                for (const std::int32_t column : columns_) push(members[column]);
            } else if (PyUnicode_Check(row)) {
                check_width(1);
                for ([[maybe_unused]] const std::int32_t column : columns_) push(row);
            } else {
                refuse_type(" must be " + row_kind() + ". Got " + type_name(row) + " instead.");
            }
        }
    }
    void push(PyObject* object) {
        prefetch_line(object);
        prefetch_line(reinterpret_cast<const char*>(object) + 64);
        objects_.push_back(object);
    }

    void check_width(Py_ssize_t width) {
        if (width == width_) return;
        if (width < n_columns_)
            refuse_value(" has " + counted(width, "column") + "; the template reads " + std::to_string(n_columns_) +
                         ".");
        if (width_ >= 0)
            refuse_value(" has " + counted(width, "column") + "; expected " + std::to_string(width_) + ", as in " +
                         first_place_ + ".");
        width_ = width;
        first_place_ = place();
    }

    // Stage two: their text, its hash, and the slots to look at, prefetched.
    void take_texts() {
        texts_.resize(objects_.size());
        std::size_t at = 0;
        for (position_ = 0; at < objects_.size(); ++position_) {
            for (std::size_t which = 0; which < columns_.size(); ++which, ++at) {
                const std::string_view text = text_of(objects_[at], columns_[which]);
                const std::uint64_t hash = hash_text(text);
                reader_.values(which).prefetch_slot(hash);
                texts_[at] = {text.data(), text.size(), hash};
            }
        }
    }
    std::string_view text_of(PyObject* object, std::int32_t column) const {
        const std::string_view text = ascii_of(object);
        return text.data() != nullptr ? text : rare_text_of(object, column);
    }
    std::string_view rare_text_of(PyObject* object, std::int32_t column) const {
        if (!PyUnicode_Check(object))
            refuse_type(" has " + type_name(object) + " in column " + std::to_string(column) + "; expected str.");
        Py_ssize_t length = 0;
        const char* const bytes = PyUnicode_AsUTF8AndSize(object, &length);
        if (bytes != nullptr) return {bytes, static_cast<std::size_t>(length)};
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nb::python_error();
        PyErr_Clear();
        refuse_value(" has a lone surrogate in column " + std::to_string(column) + ", which UTF-8 cannot express.");
    }

    // Stage three: the numbers.
    void number(std::size_t length, std::vector<std::int32_t>& ids) {
        const std::size_t start = ids.size(), n_columns = columns_.size();
        ids.resize(start + length * n_columns);
        for (std::size_t which = 0; which < n_columns; ++which) {
            Vocabulary& values = reader_.values(which);
            std::int32_t* const numbers = ids.data() + start + which * length;
            for (std::size_t t = 0; t < length; ++t) {
                const Text& text = texts_[t * n_columns + which];
                numbers[t] = values.insert({text.bytes, text.length}, text.hash);
            }
        }
    }

    TemplateReader& reader_;
    const std::span<const std::int32_t> columns_;
    const Py_ssize_t n_columns_;
    const Opener opened_;
    const std::string name_;
    Py_ssize_t example_ = 0, position_ = -1, width_ = -1;
    std::string first_place_;  // of the first row, which all others are as wide as
    std::vector<PyObject*> objects_;
    std::vector<Text> texts_;
};

using Rows = std::tuple<Vector<std::int64_t>, Vector<std::int32_t>, std::int64_t>;
using Reading = std::tuple<Vector<std::int64_t>, Rows, std::optional<Rows>>;

Rows finish(SparseRows& rows, std::int64_t n_unknown) {
    return {hand_over(rows.indptr), hand_over(rows.indices), n_unknown};
}

Reading read(const Template& form, Objects sentences, Opener opened, Vocabulary& nodes, Vocabulary* pairs, bool grow,
             const std::string& name, std::size_t block, std::size_t most_keys) {
    if (form.has_pairs() && pairs == nullptr) throw std::invalid_argument("A vocabulary of pairs is missing.");
    TemplateReader reader(form, {&classes_of, &lowered}, nodes, pairs, grow, most_keys);
    ValueReader values(reader, form.n_columns, opened, name);
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
    if (pairs != nullptr) of_pairs = finish(pair_rows, reader.n_unknown_pairs());
    return {hand_over(ends), finish(node_rows, reader.n_unknown_nodes()), of_pairs};
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
