// Array types of the bindings. Inputs are taken as they are or refused: a copy happens visibly, in Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "dualfield/core/memory.hpp"
#include "dualfield/core/sizes.hpp"

namespace dualfield::bindings {

namespace nb = nanobind;

template <class T, std::size_t Dimensions>
using Input = nb::ndarray<const T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

// A fresh NumPy array that native code fills before it is handed out.
template <class T>
class Output {
  public:
    explicit Output(std::initializer_list<std::size_t> shape) : shape_(shape) {
        std::size_t size = 1;
        for (const std::size_t n : shape) size = checked_product(size, n);
        data_.reset(static_cast<T*>(allocate(checked_product(size, sizeof(T)))));
    }
    T* data() { return data_.get(); }

    nb::ndarray<nb::numpy, T> release() {
        T* data = data_.release();
        nb::capsule owner(data, &deallocate);
        return nb::ndarray<nb::numpy, T>(data, shape_.size(), shape_.data(), owner);
    }

  private:
    std::vector<std::size_t> shape_;
    struct Free {
        void operator()(T* p) const { deallocate(p); }
    };
    std::unique_ptr<T, Free> data_;
};

inline void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

template <class Array>
const typename Array::Scalar* data_or_null(const std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

}  // namespace dualfield::bindings
