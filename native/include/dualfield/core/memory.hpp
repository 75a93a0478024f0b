// Large blocks of memory: aligned, and in huge pages where they are large.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "dualfield/core/sizes.hpp"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace dualfield {

// Uninitialised memory, to be given to deallocate; in huge pages where it is large, as NumPy does: the first touch of
// many small pages costs more than filling them.
inline void* allocate(std::size_t bytes) {
    constexpr std::size_t kHugePage = std::size_t{1} << 21, kLine = 64;
    if (bytes > kLargestProduct) throw std::bad_alloc();  // rounding up would wrap around
    const std::size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kLine;
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
#ifdef _WIN32
    void* memory = _aligned_malloc(rounded, alignment);
#else
    void* memory = std::aligned_alloc(alignment, rounded);
#endif
    if (!memory) throw std::bad_alloc();
#ifdef __linux__
    if (alignment == kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);  // advice only: nothing depends on it
#endif
    return memory;
}

inline void deallocate(void* memory) noexcept {
#ifdef _WIN32
    _aligned_free(memory);
#else
    std::free(memory);
#endif
}

// A hint that the cache line at `address` will be read soon; any address is allowed.
inline void prefetch_line(const void* address) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#else
    static_cast<void>(address);
#endif
}

// A fixed number of numbers on cache lines of their own.
template <class T>
class Aligned {
  public:
    Aligned() = default;
    explicit Aligned(std::size_t n) : data_(static_cast<T*>(allocate(checked_product(n, sizeof(T))))), size_(n) {}
    Aligned(std::size_t n, T value) : Aligned(n) { std::fill_n(data(), n, value); }

    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    std::size_t size() const { return size_; }
    T& operator[](std::size_t i) { return data_.get()[i]; }
    const T& operator[](std::size_t i) const { return data_.get()[i]; }
    T* begin() { return data(); }
    T* end() { return data() + size_; }
    const T* begin() const { return data(); }
    const T* end() const { return data() + size_; }

  private:
    struct Free {
        void operator()(T* p) const { deallocate(p); }
    };
    std::unique_ptr<T, Free> data_;
    std::size_t size_ = 0;
};

}  // namespace dualfield
