// Reads CRFsuite's item formats from Python objects into the rows of a sparse matrix.
//
// An item is a list, tuple or set of attribute strings, or a dict. In a dict, {"key": number} is the attribute "key"
// with that weight, {"key": "text"} is "key:text", and a dict, list, tuple or set as a value puts "key:" before what it
// holds.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "dualfield/text/vocabulary.hpp"
#include "growing_array.hpp"
#include "python_objects.hpp"

namespace dualfield::bindings {

// Memory for composed strings: addresses stay until clear().
class TextBlocks {
  public:
    char* take(std::size_t n_bytes);
    void clear() noexcept { block_ = used_ = 0; }

  private:
    struct Block {
        std::unique_ptr<char[]> bytes;
        std::size_t size;
    };
    std::vector<Block> blocks_;
    std::size_t block_ = 0, used_ = 0;
};

class AttributeReader {
  public:
    // With `grow`, attributes not seen before become new columns; without, they are counted and left out.
    // `name` is what the errors call the input.
    AttributeReader(Vocabulary& vocabulary, bool grow, std::string name)
        : vocabulary_(vocabulary), grow_(grow), name_(std::move(name)) {
        indptr.push(0);
    }

    // Appends one row per item; throws a Python TypeError or ValueError that names the place. `example` is the index
    // that errors give, or -1 where the input is one flat list of items.
    void read_example(PyObject* sequence, Py_ssize_t example);

    GrowingArray<std::int64_t> indptr;   // [rows + 1]
    GrowingArray<std::int32_t> indices;  // [nnz]
    GrowingArray<double> values;         // [nnz] if weighted
    bool weighted = false;               // some weight is not 1
    std::int64_t n_unknown = 0;

  private:
    struct Record {  // borrowed; value is null for a member of a list or tuple
        PyObject* key;
        PyObject* value;
    };
    struct Attribute {
        const char* bytes;
        std::size_t length;
        std::uint64_t hash;
        double weight;
        std::string_view text() const noexcept { return {bytes, length}; }
    };

    // The three stages of the fast path. None of them runs Python code, so borrowed references hold throughout.
    Py_ssize_t gather(const Members& items, Py_ssize_t start, Py_ssize_t stop);
    Py_ssize_t compose(Py_ssize_t start, Py_ssize_t n_items);
    void resolve();
    template <bool grow, bool with_values>
    void resolve_as();

    // The slow path for an item whose reading may run Python code.
    void read_carefully(PyObject* item);

    bool push_entry(PyObject* key, PyObject* value, std::string_view prefix, int depth, bool careful);
    bool push_dict(PyObject* dict, std::string_view prefix, int depth, bool careful);
    void push_members(PyObject* list, std::string_view prefix);
    void push_set(PyObject* set, std::string_view prefix);
    void push_text(std::string_view text, double weight);

    std::string_view text_of(PyObject* object, const char* role) const;
    std::string_view rare_text_of(PyObject* object, const char* role) const;
    double weight_of(PyObject* number, std::string_view attribute) const;
    std::string_view join(std::string_view prefix, std::string_view text);
    std::string_view join(std::string_view prefix, std::string_view key, std::string_view value);
    std::string place() const;

    Vocabulary& vocabulary_;
    const bool grow_;
    const std::string name_;
    Py_ssize_t example_ = 0, position_ = 0;  // for errors

    std::vector<Record> records_;
    std::vector<std::size_t> record_ends_;  // per gathered item
    std::vector<Attribute> attributes_;
    std::vector<std::size_t> attribute_ends_;  // per composed item
    bool pending_weights_ = false;
    TextBlocks composed_;
};

}  // namespace dualfield::bindings
