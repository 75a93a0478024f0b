#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "arrays.hpp"
#include "attribute_reader.hpp"
#include "dualfield/text/vocabulary.hpp"
#include "register.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dualfield::bindings {

namespace {

using Strings = nb::typed<nb::iterable, nb::str>;
using Objects = nb::typed<nb::iterable, nb::object>;

template <class T, class Source>
Vector<T> copied(std::span<const Source> source) {
    GrowingArray<T> array;
    std::copy(source.begin(), source.end(), array.room(source.size()));
    array.advance(source.size());
    return hand_over(array);
}

Vector<std::uint8_t> arena(const Vocabulary& vocabulary) {
    return copied<std::uint8_t>(vocabulary.arena());
}
Vector<std::int64_t> offsets(const Vocabulary& vocabulary) {
    return copied<std::int64_t>(vocabulary.offsets());
}

Vocabulary from_buffers(Input<std::uint8_t, 1> bytes, Input<std::int64_t, 1> bounds) {
    return Vocabulary::from_buffers({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                    {bounds.data(), bounds.size()});
}

Vector<std::uint64_t> slots(const Vocabulary& vocabulary) {
    return copied<std::uint64_t>(
        std::span<const std::uint64_t>(VocabularyView::make_slots(vocabulary.arena(), vocabulary.offsets())));
}

// A view that keeps its arrays, and with them a mapped file, alive.
class MappedVocabulary {
  public:
    MappedVocabulary(Input<std::uint8_t, 1> arena, Input<std::int64_t, 1> offsets, Input<std::uint64_t, 1> slots)
        : arena_(arena),
          offsets_(offsets),
          slots_(slots),
          view_({reinterpret_cast<const char*>(arena.data()), arena.size()}, {offsets.data(), offsets.size()},
                {slots.data(), slots.size()}) {}

    std::int32_t size() const noexcept { return view_.size(); }

    nb::str attribute(std::int32_t column) const {
        if (column < 0 || column >= size()) throw nb::index_error("column out of range");
        const std::string_view text = view_.attribute(column);
        if (!is_utf8(text)) throw nb::value_error("an attribute is not valid UTF-8.");
        return nb::str(text.data(), text.size());
    }

    Vector<std::int32_t> find_all(Strings strings) const;

    // The columns here of the attributes of another vocabulary.
    Vector<std::int32_t> find_each(const Vocabulary& wanted) const {
        GrowingArray<std::int32_t> columns;
        {
            const nb::gil_scoped_release unlocked;
            for (std::int32_t column = 0; column < wanted.size(); ++column)
                columns.push(view_.find(wanted.attribute(column)));
        }
        return hand_over(columns);
    }

  private:
    Input<std::uint8_t, 1> arena_;
    Input<std::int64_t, 1> offsets_;
    Input<std::uint64_t, 1> slots_;
    VocabularyView view_;
};

nb::str attribute(const Vocabulary& vocabulary, std::int32_t column) {
    if (column < 0 || column >= vocabulary.size()) throw nb::index_error("column out of range");
    const std::string_view text = vocabulary.attribute(column);
    return nb::str(text.data(), text.size());
}

nb::typed<nb::list, nb::str> attributes(const Vocabulary& vocabulary) {
    nb::typed<nb::list, nb::str> all;
    for (std::int32_t column = 0; column < vocabulary.size(); ++column) all.append(attribute(vocabulary, column));
    return all;
}

// The UTF-8 of attributes[index], valid as long as the object is; none for a lone surrogate.
std::optional<std::string_view> text_of(nb::handle text, std::size_t index) {
    if (!PyUnicode_Check(text.ptr())) {
        std::string message = "attributes[" + std::to_string(index) + "] must be a str. Got ";
        throw nb::type_error(message.append(type_name(text.ptr())).append(" instead.").c_str());
    }
    Py_ssize_t length = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &length);
    if (bytes != nullptr) return std::string_view(bytes, static_cast<std::size_t>(length));
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nb::python_error();
    PyErr_Clear();
    return std::nullopt;
}

// What no vocabulary can hold is unknown, not an error.
template <class Map>
Vector<std::int32_t> columns_of(const Map& vocabulary, Strings strings) {
    GrowingArray<std::int32_t> columns;
    for (nb::handle string : strings) {
        const std::optional<std::string_view> text = text_of(string, columns.size());
        columns.push(text ? vocabulary.find(*text) : Vocabulary::unknown);
    }
    return hand_over(columns);
}

Vector<std::int32_t> find_all(const Vocabulary& vocabulary, Strings strings) {
    return columns_of(vocabulary, strings);
}

Vector<std::int32_t> MappedVocabulary::find_all(Strings strings) const {
    return columns_of(view_, strings);
}

void insert_all(Vocabulary& vocabulary, Strings strings) {
    std::size_t index = 0;
    for (nb::handle string : strings) {
        const std::optional<std::string_view> text = text_of(string, index);
        if (!text) {
            const std::string message = "attributes[" + std::to_string(index) + "] has a lone surrogate.";
            throw nb::value_error(message.c_str());
        }
        vocabulary.insert(*text);
        ++index;
    }
}

// The columns of the attributes of another vocabulary, in its order; those that are not known become new columns.
Vector<std::int32_t> insert_each(Vocabulary& vocabulary, const Vocabulary& other) {
    constexpr std::int32_t ahead = 8;
    GrowingArray<std::int32_t> columns;
    {
        const nb::gil_scoped_release unlocked;
        std::array<std::uint64_t, ahead> hashes{};
        const auto prepare = [&](std::int32_t column) {
            const std::uint64_t hash = hash_text(other.attribute(column));
            hashes[static_cast<std::size_t>(column % ahead)] = hash;
            vocabulary.prefetch_slot(hash);
        };
        const std::int32_t size = other.size();
        for (std::int32_t column = 0; column < std::min(ahead, size); ++column) prepare(column);
        for (std::int32_t column = 0; column < size; ++column) {
            const std::uint64_t hash = hashes[static_cast<std::size_t>(column % ahead)];
            columns.push(vocabulary.insert(other.attribute(column), hash));
            if (column + ahead < size) prepare(column + ahead);
        }
    }
    return hand_over(columns);
}

// Some attributes of a vocabulary, in a given order, as a vocabulary.
Vocabulary taken(const Vocabulary& vocabulary, Input<std::int32_t, 1> columns) {
    const std::span<const std::int32_t> wanted(columns.data(), columns.size());
    const nb::gil_scoped_release unlocked;
    Vocabulary result;
    for (const std::int32_t column : wanted) {
        if (column < 0 || column >= vocabulary.size()) throw nb::index_error("column out of range");
        result.insert(vocabulary.attribute(column));
    }
    return result;
}

// What can be iterated over but is no sequence of items: most often one level of lists is missing.
void check_sequence(nb::handle sequence, const std::string& place) {
    PyObject* const object = sequence.ptr();
    const bool wrong =
        PyUnicode_Check(object) || PyBytes_Check(object) || PyDict_Check(object) || PyAnySet_Check(object);
    if (is_iterable(object) && !wrong) return;
    std::string message = place;
    message.append(" must be a list of items, each a dict, or a list, tuple or set of attribute strings. Got ");
    message.append(type_name(object)).append(" instead");
    message.append(wrong ? ": is a level of lists missing? One sequence is passed as [sequence]." : ".");
    throw nb::type_error(message.c_str());
}

using Rows = std::tuple<Vector<std::int64_t>, Vector<std::int32_t>, std::optional<Vector<double>>, Vector<std::int64_t>,
                        std::int64_t>;

Rows finish(AttributeReader& reader, GrowingArray<std::int64_t>& ends) {
    std::optional<Vector<double>> values;
    if (reader.weighted) values = hand_over(reader.values);
    return {hand_over(reader.indptr), hand_over(reader.indices), values, hand_over(ends), reader.n_unknown};
}

Rows read_sequences(Vocabulary& vocabulary, Objects sequences, bool grow, const std::string& name) {
    AttributeReader reader(vocabulary, grow, name);
    GrowingArray<std::int64_t> ends;
    ends.push(0);
    Py_ssize_t example = 0;
    for (nb::handle sequence : sequences) {
        check_sequence(sequence, name + "[" + std::to_string(example) + "]");
        reader.read_example(sequence.ptr(), example++);
        ends.push(static_cast<std::int64_t>(reader.indptr.size()) - 1);
    }
    return finish(reader, ends);
}

Rows read_items(Vocabulary& vocabulary, Objects items, bool grow, const std::string& name) {
    AttributeReader reader(vocabulary, grow, name);
    GrowingArray<std::int64_t> ends;
    ends.push(0);
    check_sequence(items, name);
    reader.read_example(items.ptr(), -1);
    ends.push(static_cast<std::int64_t>(reader.indptr.size()) - 1);
    return finish(reader, ends);
}

}  // namespace

void register_vocabulary(nb::module_& module) {
    const auto equal = [](const Vocabulary& a, const Vocabulary& b) { return a == b; };
    const auto copy = [](const Vocabulary& vocabulary) { return Vocabulary(vocabulary); };
    nb::class_<Vocabulary>(module, "Vocabulary", "Attribute strings to columns, in order of first appearance.")
        .def(nb::init<>())
        .def("__len__", &Vocabulary::size)
        .def("equals", equal, "other"_a)
        .def("copy", copy)
        .def("arena", &arena, "UTF-8 of all attributes in column order.")
        .def("offsets", &offsets, "Where each attribute starts in the arena, and the end of the last.")
        .def("slots", &slots, "A table by which a mapped vocabulary finds attributes.")
        .def_static("from_buffers", &from_buffers, "arena"_a.noconvert(), "offsets"_a.noconvert(),
                    "What arena and offsets describe; ValueError unless they are sound.")
        .def("attribute", &attribute, "column"_a, "The string of a column.")
        .def("attributes", &attributes, "All strings in column order.")
        .def("find_all", &find_all, "attributes"_a, "Columns of the strings, -1 where unknown.")
        .def("insert_all", &insert_all, "attributes"_a, "New columns for the strings that have none.")
        .def("insert_each", &insert_each, "other"_a,
             "Columns of the attributes of another vocabulary, which are added where they are not known.")
        .def("taken", &taken, "columns"_a.noconvert(), "The attributes of some columns, in their order.")
        .def("read_sequences", &read_sequences, "sequences"_a, "grow"_a, "name"_a,
             "Rows of an iterable of sequences of items: indptr, indices, values or None, offsets, unknown attributes.")
        .def("read_items", &read_items, "items"_a, "grow"_a, "name"_a,
             "The same for one flat list of items, taken as one example.");
    nb::class_<MappedVocabulary>(module, "MappedVocabulary",
                                 "A vocabulary in arrays that may hold anything; ValueError where they are not sound.")
        .def(nb::init<Input<std::uint8_t, 1>, Input<std::int64_t, 1>, Input<std::uint64_t, 1>>(), "arena"_a.noconvert(),
             "offsets"_a.noconvert(), "slots"_a.noconvert())
        .def("__len__", &MappedVocabulary::size)
        .def("attribute", &MappedVocabulary::attribute, "column"_a, "The string of a column.")
        .def("find_all", &MappedVocabulary::find_all, "attributes"_a, "Columns of the strings, -1 where unknown.")
        .def("find_each", &MappedVocabulary::find_each, "wanted"_a,
             "Columns of the attributes of another vocabulary, -1 where unknown.");
}

}  // namespace dualfield::bindings
