// Array types of the bindings. Inputs are taken as they are or refused: a copy happens visibly, in Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace dualfield::bindings {

namespace nb = nanobind;

template <class T, std::size_t Dimensions>
using Input = nb::ndarray<const T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

// Uninitialised memory; in huge pages where it is large, as NumPy does: the first touch of many small pages costs more
// than filling them.
inline void* allocate(std::size_t bytes) {
    constexpr std::size_t kHugePage = std::size_t{1} << 21;
#ifdef __linux__
    if (bytes >= 2 * kHugePage) {
        void* memory = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
        if (!memory) throw std::bad_alloc();
        madvise(memory, bytes, MADV_HUGEPAGE);  // advice only: nothing depends on it
        return memory;
    }
#endif
    void* memory = std::malloc(bytes > 0 ? bytes : 1);
    if (!memory) throw std::bad_alloc();
    return memory;
}

// A fresh NumPy array that native code fills before it is handed out.
template <class T>
class Output {
  public:
    explicit Output(std::initializer_list<std::size_t> shape) : shape_(shape) {
        std::size_t size = sizeof(T);
        for (const std::size_t n : shape) size *= n;
        data_.reset(static_cast<T*>(allocate(size)));
    }
    T* data() { return data_.get(); }

    nb::ndarray<nb::numpy, T> release() {
        T* data = data_.release();
        nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
        return nb::ndarray<nb::numpy, T>(data, shape_.size(), shape_.data(), owner);
    }

  private:
    std::vector<std::size_t> shape_;
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };
    std::unique_ptr<T, Free> data_;
};

template <class Array>
const typename Array::Scalar* data_or_null(const std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

}  // namespace dualfield::bindings
