// Memory for rows of vectors: aligned, grown on demand, reused from one example to the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "dualfield/core/sizes.hpp"

namespace dualfield {

class Buffer {
  public:
    Buffer() = default;
    Buffer(std::size_t n, double value) { std::fill_n(require(n), n, value); }

    // At least n doubles, contents undefined after growth.
    double* require(std::size_t n) {
        if (n > capacity_) {
            // Freed first: peak memory is what is asked for, not that plus the old block.
            data_.reset();
            capacity_ = 0;
            data_.reset(static_cast<double*>(::operator new[](checked_product(n, sizeof(double)), kAlignment)));
            capacity_ = n;
        }
        return data_.get();
    }

    double* data() { return data_.get(); }
    const double* data() const { return data_.get(); }

  private:
    static constexpr std::align_val_t kAlignment{64};
    struct Free {
        void operator()(double* p) const { ::operator delete[](p, kAlignment); }
    };
    std::unique_ptr<double[], Free> data_;
    std::size_t capacity_ = 0;
};

}  // namespace dualfield
