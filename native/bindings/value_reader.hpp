// Numbers the values in the columns of tokens, which are Python objects, and keeps rows of columns that become NumPy
// arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "dualfield/text/templates.hpp"
#include "dualfield/text/vocabulary.hpp"
#include "growing_array.hpp"
#include "python_objects.hpp"

namespace dualfield::bindings {

using Objects = nb::typed<nb::iterable, nb::object>;
using Opener = nb::typed<nb::callable, nb::object(nb::object)>;

// indptr, indices, and the number of unknown attributes that were left out.
using Rows = std::tuple<Vector<std::int64_t>, Vector<std::int32_t>, std::int64_t>;

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

    Rows finished(std::int64_t n_unknown) { return {hand_over(indptr), hand_over(indices), n_unknown}; }

  private:
    GrowingArray<std::int64_t> indptr;   // [rows + 1]
    GrowingArray<std::int32_t> indices;  // [nnz]
};

inline std::string counted(Py_ssize_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Numbers the values of sentences, and says what is wrong with them.
class ValueReader {
  public:
    // `columns` are those to read, of the `n_columns` that a row must have, and `values` the numbers of their values.
    // `opened` makes a list of a sentence that is neither a list nor a tuple. `owner` is who reads, for errors.
    ValueReader(std::span<const std::int32_t> columns, std::vector<Vocabulary*> values, Py_ssize_t n_columns,
                Opener opened, const std::string& name, const std::string& owner)
        : values_(std::move(values)),
          columns_(columns),
          n_columns_(n_columns),
          opened_(opened),
          name_(name),
          owner_(owner) {}

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
            refuse_value(" has " + counted(width, "column") + "; " + owner_ + " reads " + std::to_string(n_columns_) +
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
                values_[which]->prefetch_slot(hash);
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
            Vocabulary& values = *values_[which];
            std::int32_t* const numbers = ids.data() + start + which * length;
            for (std::size_t t = 0; t < length; ++t) {
                const Text& text = texts_[t * n_columns + which];
                numbers[t] = values.insert({text.bytes, text.length}, text.hash);
            }
        }
    }

    const std::vector<Vocabulary*> values_;  // [columns_]
    const std::span<const std::int32_t> columns_;
    const Py_ssize_t n_columns_;
    const Opener opened_;
    const std::string name_, owner_;
    Py_ssize_t example_ = 0, position_ = -1, width_ = -1;
    std::string first_place_;  // of the first row, which all others are as wide as
    std::vector<PyObject*> objects_;
    std::vector<Text> texts_;
};

}  // namespace dualfield::bindings
