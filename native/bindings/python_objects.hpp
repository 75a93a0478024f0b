// What the readers of Python's lists and strings want to know of an object, in the quickest way that a build allows:
// read from its memory where the layout is known, asked for by a call where a build is for every Python (the stable
// ABI). Nothing here runs Python code, but for the name of a type, which only messages ask for.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "dualfield/core/memory.hpp"

namespace dualfield::bindings {

// As Python itself names types in messages: those of Python's classes alone, those of other modules with the module.
inline std::string type_name(PyObject* object) {
#ifndef Py_LIMITED_API
    return Py_TYPE(object)->tp_name;
#else
    const nanobind::handle type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    const auto name = nanobind::cast<std::string>(type.attr("__name__"));
    if ((PyType_GetFlags(Py_TYPE(object)) & Py_TPFLAGS_HEAPTYPE) != 0) return name;
    const auto module = nanobind::cast<std::string>(type.attr("__module__"));
    return module == "builtins" ? name : module + "." + name;
#endif
}

inline bool is_iterable(PyObject* object) {
    return PySequence_Check(object) != 0 || PyType_GetSlot(Py_TYPE(object), Py_tp_iter) != nullptr;
}

inline std::string_view bytes_of(PyObject* bytes) {
    return {PyBytes_AsString(bytes), static_cast<std::size_t>(PyBytes_Size(bytes))};
}

// The text of a str of ASCII; data() is null if it is none, or if that cannot be seen.
inline std::string_view ascii_of(PyObject* text) {
#ifndef Py_LIMITED_API
    if (PyUnicode_Check(text) && PyUnicode_IS_COMPACT_ASCII(text))
        return {reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(text)),
                static_cast<std::size_t>(PyUnicode_GET_LENGTH(text))};
#else
    static_cast<void>(text);
#endif
    return {};
}

// The members of a list or tuple, as long as it is not changed.
class Members {
  public:
#ifndef Py_LIMITED_API
    explicit Members(PyObject* sequence)
        : items_(PySequence_Fast_ITEMS(sequence)), size_(PySequence_Fast_GET_SIZE(sequence)) {}
    PyObject* operator[](Py_ssize_t at) const { return items_[at]; }
#else
    explicit Members(PyObject* sequence)
        : sequence_(sequence),
          item_(PyList_Check(sequence) ? &PyList_GetItem : &PyTuple_GetItem),
          size_(PyList_Check(sequence) ? PyList_Size(sequence) : PyTuple_Size(sequence)) {}
    PyObject* operator[](Py_ssize_t at) const { return item_(sequence_, at); }
#endif
    Py_ssize_t size() const { return size_; }

    // A hint that the members of `object`, if it is a list, will be read soon.
    static void prefetch(PyObject* object) {
#ifndef Py_LIMITED_API
        if (PyList_Check(object)) prefetch_line(reinterpret_cast<PyListObject*>(object)->ob_item);
#else
        static_cast<void>(object);
#endif
    }

  private:
#ifndef Py_LIMITED_API
    PyObject* const* items_;
#else
    PyObject* sequence_;
    PyObject* (*item_)(PyObject*, Py_ssize_t);
#endif
    Py_ssize_t size_;
};

}  // namespace dualfield::bindings
