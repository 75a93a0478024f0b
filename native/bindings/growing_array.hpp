// Arrays whose size is known only when they are full, and that become NumPy arrays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "arrays.hpp"

namespace dualfield::bindings {

// Like std::vector, but grown by realloc, which moves pages instead of bytes, and able to hand its memory over.
template <class T>
class GrowingArray {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    GrowingArray() = default;
    GrowingArray(const GrowingArray&) = delete;
    GrowingArray& operator=(const GrowingArray&) = delete;
    ~GrowingArray() { std::free(data_); }

    std::size_t size() const noexcept { return size_; }
    // Room for `count` more; written by the caller, who then says how many were.
    T* room(std::size_t count) {
        if (size_ + count > capacity_) reallocate(std::max(size_ + count, capacity_ + capacity_ / 2));
        return data_ + size_;
    }
    void advance(std::size_t count) noexcept { size_ += count; }
    void push(T value) {
        *room(1) = value;
        ++size_;
    }
    // Exactly size() elements, to be freed with std::free.
    T* release() {
        reallocate(std::max<std::size_t>(size_, 1));
        return std::exchange(data_, nullptr);
    }

  private:
    void reallocate(std::size_t count) {
        void* moved = std::realloc(data_, checked_product(count, sizeof(T)));
        if (moved == nullptr) throw std::bad_alloc();
        data_ = static_cast<T*>(moved);
        capacity_ = count;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;
};

template <class T>
using Vector = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;

// NumPy takes the memory over; nothing is copied.
template <class T>
Vector<T> hand_over(GrowingArray<T>& array) {
    const std::size_t size = array.size();
    std::unique_ptr<T, decltype(&std::free)> memory(array.release(), &std::free);
    nb::capsule owner(memory.get(), [](void* data) noexcept { std::free(data); });
    return Vector<T>(memory.release(), {size}, owner);
}

}  // namespace dualfield::bindings
