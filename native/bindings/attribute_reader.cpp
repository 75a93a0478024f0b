// Strings of a corpus lie all over memory, so the cost is cache misses, and reading goes in three stages over a whole
// sequence: collect the objects and prefetch them; hash their text and prefetch the slots; look up, prefetching the
// bytes to compare with a few strings ahead. No stage runs Python code: what might (numbers of foreign types, sets,
// whose iteration allocates) is set aside and read one item at a time with references held.
#include "attribute_reader.hpp"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>

namespace nb = nanobind;

namespace dualfield::bindings {

namespace {

constexpr int deepest_nesting = 64;
constexpr std::size_t bytes_ahead = 16;  // lookups between prefetching the bytes of an attribute and comparing them

// Shortened for an error message, without cutting a character in two.
std::string quoted(std::string_view text) {
    constexpr std::size_t longest = 60;
    std::size_t stop = std::min(text.size(), longest);
    while (stop < text.size() && stop > 0 && (static_cast<unsigned char>(text[stop]) & 0xc0) == 0x80) --stop;
    std::string result(1, '\'');
    result.append(text.substr(0, stop)).append(stop < text.size() ? "...'" : "'");
    return result;
}

bool is_text(PyObject* object) {
    return PyUnicode_Check(object) || PyBytes_Check(object);
}

[[noreturn]] void throw_type_error(const std::string& message) {
    throw nb::type_error(message.c_str());
}
[[noreturn]] void throw_value_error(const std::string& message) {
    throw nb::value_error(message.c_str());
}

}  // namespace

char* TextBlocks::take(std::size_t n_bytes) {
    constexpr std::size_t usual_block = 1 << 16;
    while (block_ < blocks_.size() && used_ + n_bytes > blocks_[block_].size) {
        ++block_;
        used_ = 0;
    }
    if (block_ == blocks_.size()) {
        const std::size_t size = std::max(usual_block, n_bytes);
        blocks_.push_back({std::make_unique_for_overwrite<char[]>(size), size});
    }
    char* const bytes = blocks_[block_].bytes.get() + used_;
    used_ += n_bytes;
    return bytes;
}

std::string AttributeReader::place() const {
    const std::string outer = example_ < 0 ? name_ : name_ + "[" + std::to_string(example_) + "]";
    return outer + "[" + std::to_string(position_) + "]";
}

// The UTF-8 of a str, kept by the object itself, or of a bytes object, checked. Runs no Python code unless it throws.
inline std::string_view AttributeReader::text_of(PyObject* object, const char* role) const {
    const std::string_view text = ascii_of(object);
    return text.data() != nullptr ? text : rare_text_of(object, role);
}

std::string_view AttributeReader::rare_text_of(PyObject* object, const char* role) const {
    if (PyUnicode_Check(object)) {
        Py_ssize_t length = 0;
        const char* bytes = PyUnicode_AsUTF8AndSize(object, &length);
        if (bytes != nullptr) return {bytes, static_cast<std::size_t>(length)};
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nb::python_error();
        PyErr_Clear();
        throw_value_error(place() + " has " + role + " with a lone surrogate, which UTF-8 cannot express.");
    }
    if (PyBytes_Check(object)) {
        const std::string_view bytes = bytes_of(object);
        if (!is_utf8(bytes)) throw_value_error(place() + " has " + role + " whose bytes are not valid UTF-8.");
        return bytes;
    }
    throw_type_error(place() + " has " + role + " of type " + type_name(object) + "; expected str.");
}

// May run Python code: an object decides itself what its __float__ does.
double AttributeReader::weight_of(PyObject* number, std::string_view attribute) const {
    const double weight = PyFloat_AsDouble(number);
    if (weight == -1.0 && PyErr_Occurred() != nullptr) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear();
            throw_value_error(place() + " has a weight of attribute " + quoted(attribute) + " too large for a float.");
        }
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
        PyErr_Clear();
        throw_type_error(place() + " has a value of type " + type_name(number) + " for attribute " + quoted(attribute) +
                         "; expected a str, a number, a dict, or a list, tuple or set of str.");
    }
    if (!std::isfinite(weight))
        throw_value_error(place() + " has weight " +
                          (std::isnan(weight) ? "nan"
                           : weight > 0       ? "inf"
                                              : "-inf") +
                          " for attribute " + quoted(attribute) + "; expected a finite number.");
    return weight;
}

std::string_view AttributeReader::join(std::string_view prefix, std::string_view text) {
    const std::size_t length = prefix.size() + text.size();
    char* const bytes = composed_.take(length);
    std::copy_n(text.data(), text.size(), std::copy_n(prefix.data(), prefix.size(), bytes));
    return {bytes, length};
}

// prefix + "key:value"
std::string_view AttributeReader::join(std::string_view prefix, std::string_view key, std::string_view value) {
    const std::size_t length = prefix.size() + key.size() + 1 + value.size();
    char* const bytes = composed_.take(length);
    char* const colon = std::copy_n(key.data(), key.size(), std::copy_n(prefix.data(), prefix.size(), bytes));
    *colon = ':';
    std::copy_n(value.data(), value.size(), colon + 1);
    return {bytes, length};
}

inline void AttributeReader::push_text(std::string_view text, double weight) {
    const std::uint64_t hash = hash_text(text);
    vocabulary_.prefetch_slot(hash);
    attributes_.push_back({text.data(), text.size(), hash, weight});
}

void AttributeReader::push_members(PyObject* list, std::string_view prefix) {
    const Members members(list);
    for (Py_ssize_t i = 0; i < members.size(); ++i) push_text(join(prefix, text_of(members[i], "an attribute")), 1.0);
}

// A set's own order changes from run to run with the salt of str hashes: its members are taken in the order of their
// bytes, so that columns are numbered alike every time.
void AttributeReader::push_set(PyObject* set, std::string_view prefix) {
    const nb::object members = nb::steal(PySequence_List(set));
    if (!members.is_valid()) throw nb::python_error();
    const std::size_t first = attributes_.size();
    push_members(members.ptr(), prefix);
    std::sort(attributes_.begin() + static_cast<std::ptrdiff_t>(first), attributes_.end(),
              [](const Attribute& a, const Attribute& b) { return a.text() < b.text(); });
}

// Returns false, having pushed nothing that counts, where only the careful path may go on.
bool AttributeReader::push_entry(PyObject* key, PyObject* value, std::string_view prefix, int depth, bool careful) {
    const std::string_view text = text_of(key, "a key");
    if (is_text(value)) {
        push_text(join(prefix, text, text_of(value, "a value")), 1.0);
        return true;
    }
    if (PyDict_Check(value) || PyList_Check(value) || PyTuple_Check(value) || PyAnySet_Check(value)) {
        const std::string_view inner = join(prefix, text, {});
        if (PyDict_Check(value)) return push_dict(value, inner, depth + 1, careful);
        if (!PyAnySet_Check(value)) return push_members(value, inner), true;
        if (!careful) return false;
        return push_set(value, inner), true;
    }
    // These are read from their own memory; a subclass of int may have a __float__ of its own.
    if (!careful && !PyFloat_Check(value) && !PyLong_CheckExact(value) && !PyBool_Check(value)) return false;
    // Careful reading copies the text: nothing then depends on what __float__ does to the dict.
    const std::string_view attribute = careful || !prefix.empty() ? join(prefix, text) : text;
    const double weight = weight_of(value, attribute);
    pending_weights_ |= weight != 1.0;
    push_text(attribute, weight);
    return true;
}

bool AttributeReader::push_dict(PyObject* dict, std::string_view prefix, int depth, bool careful) {
    if (depth > deepest_nesting)
        throw_value_error(place() + " nests dicts more than " + std::to_string(deepest_nesting) + " deep.");
    const nb::object held = careful ? nb::steal(PyDict_Copy(dict)) : nb::borrow(dict);
    if (!held.is_valid()) throw nb::python_error();
    Py_ssize_t at = 0;
    PyObject *key = nullptr, *value = nullptr;
    while (PyDict_Next(held.ptr(), &at, &key, &value) != 0) {
        const nb::object key_held = nb::borrow(key), value_held = nb::borrow(value);
        if (!push_entry(key, value, prefix, depth, careful)) return false;
    }
    return true;
}

// Stage one: the objects of items[start, stop), up to the first item that needs care; returns how many items.
Py_ssize_t AttributeReader::gather(const Members& items, Py_ssize_t start, Py_ssize_t stop) {
    records_.clear();
    record_ends_.clear();
    const auto push = [this](PyObject* key, PyObject* value) {
        prefetch_line(key);
        prefetch_line(reinterpret_cast<const char*>(key) + 64);
        if (value != nullptr) prefetch_line(value);
        records_.push_back({key, value});
    };
    for (Py_ssize_t t = start; t < stop; ++t) {
        PyObject* const item = items[t];
        if (t + 4 < stop) prefetch_line(items[t + 4]);
        if (t + 2 < stop) Members::prefetch(items[t + 2]);
        if (PyList_Check(item) || PyTuple_Check(item)) {
            const Members members(item);
            for (Py_ssize_t i = 0; i < members.size(); ++i) push(members[i], nullptr);
        } else if (PyDict_Check(item)) {
            Py_ssize_t at = 0;
            PyObject *key = nullptr, *value = nullptr;
            while (PyDict_Next(item, &at, &key, &value) != 0) push(key, value);
        } else {
            return t - start;
        }
        record_ends_.push_back(records_.size());
    }
    return stop - start;
}

// Stage two: text, hash and weight of what was gathered, up to the first item that needs care; returns how many items.
Py_ssize_t AttributeReader::compose(Py_ssize_t start, Py_ssize_t n_items) {
    std::size_t at = 0;
    for (Py_ssize_t t = 0; t < n_items; ++t) {
        position_ = start + t;
        const std::size_t first = attributes_.size();
        for (const std::size_t end = record_ends_[static_cast<std::size_t>(t)]; at < end; ++at) {
            const Record& record = records_[at];
            if (record.value == nullptr) {
                push_text(text_of(record.key, "an attribute"), 1.0);
            } else if (!push_entry(record.key, record.value, {}, 0, false)) {
                attributes_.resize(first);
                return t;
            }
        }
        attribute_ends_.push_back(attributes_.size());
    }
    return n_items;
}

// Stage three: columns of what was composed, as rows of the result.
template <bool grow, bool with_values>
void AttributeReader::resolve_as() {
    const std::size_t count = attributes_.size();
    std::int32_t* const columns = indices.room(count);
    double* const weights = with_values ? values.room(count) : nullptr;
    const auto base = static_cast<std::int64_t>(indices.size());
    std::size_t at = 0, kept = 0;
    for (const std::size_t end : attribute_ends_) {
        for (; at < end; ++at) {
            if (at + bytes_ahead < count) vocabulary_.prefetch_bytes(attributes_[at + bytes_ahead].hash);
            const Attribute& attribute = attributes_[at];
            const std::int32_t column = grow ? vocabulary_.insert(attribute.text(), attribute.hash)
                                             : vocabulary_.find(attribute.text(), attribute.hash);
            columns[kept] = column;
            if (with_values) weights[kept] = attribute.weight;
            kept += grow || column != Vocabulary::unknown;
        }
        indptr.push(base + static_cast<std::int64_t>(kept));
    }
    n_unknown += static_cast<std::int64_t>(count - kept);
    indices.advance(kept);
    if (with_values) values.advance(kept);
}

void AttributeReader::resolve() {
    if (pending_weights_ && !weighted) {  // all weights so far were 1
        std::fill_n(values.room(indices.size()), indices.size(), 1.0);
        values.advance(indices.size());
        weighted = true;
    }
    if (grow_)
        weighted ? resolve_as<true, true>() : resolve_as<true, false>();
    else
        weighted ? resolve_as<false, true>() : resolve_as<false, false>();
    attributes_.clear();
    attribute_ends_.clear();
    composed_.clear();
}

void AttributeReader::read_carefully(PyObject* item) {
    if (PyDict_Check(item)) {
        push_dict(item, {}, 0, true);
    } else if (PyAnySet_Check(item)) {
        push_set(item, {});
    } else {
        std::string message = place() + " must be a dict, or a list, tuple or set of attribute strings. Got ";
        message.append(type_name(item)).append(" instead");
        message.append(is_text(item) ? ": an item of one attribute is written as a list of one." : ".");
        throw_type_error(message);
    }
    attribute_ends_.push_back(attributes_.size());
}

void AttributeReader::read_example(PyObject* sequence, Py_ssize_t example) {
    example_ = example;
    // A tuple of our own: no item can vanish while it is read.
    const nb::object held = nb::steal(PySequence_Tuple(sequence));
    if (!held.is_valid()) throw nb::python_error();
    const Members items(held.ptr());
    const Py_ssize_t size = items.size();
    Py_ssize_t window = size;
    for (Py_ssize_t start = 0; start < size;) {
        const Py_ssize_t stop = start + std::min(window, size - start);
        start += compose(start, gather(items, start, stop));
        resolve();
        window *= 2;
        if (start == stop) continue;
        position_ = start;
        read_carefully(items[start]);
        resolve();
        ++start;
        window = 1;  // such items come in runs: do not gather a whole sequence again for each of them
    }
}

}  // namespace dualfield::bindings
