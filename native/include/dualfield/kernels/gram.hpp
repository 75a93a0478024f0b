// The kernel matrix of the training points, as solvers see it: rows, a diagonal, products. Whether it is stored,
// borrowed, recomputed or factored is nobody else's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dualfield/core/memory.hpp"
#include "dualfield/core/parallel.hpp"
#include "dualfield/kernels/kernel.hpp"

namespace dualfield {

// Asked now and then during long work; throws to end it.
using Poll = std::function<void()>;

template <class T>
class Gram {
  public:
    virtual ~Gram() = default;

    std::size_t size() const { return diagonal_.size(); }
    std::span<const T> diagonal() const { return diagonal_; }

    // out[i] = row points[i], at least size() numbers, valid until the next call of this or product().
    virtual void rows(std::span<const std::int32_t> points, const T** out, ThreadTeam& team) = 0;

    // How many rows may be asked for at once.
    virtual std::size_t most_rows() const { return size(); }

    // Whether values are computed where they are used, by block() and between(), and there are no rows.
    virtual bool is_streamed() const { return false; }
    // out[i * stride + j - first] = K[points[i]][j] for columns [first, last), first a multiple of kChunk.
    virtual void block(std::span<const std::int32_t> points, std::size_t first, std::size_t last, T* out,
                       std::size_t stride) const;
    // out[a * stride + b] = K[points[a]][points[b]].
    virtual void between(std::span<const std::int32_t> points, T* out, std::size_t stride) const;

    // scores[r * stride + j] = sum_i K[i][j] coefficients[i * n_rows + r], for all j < size().
    virtual void product(const T* coefficients, std::size_t n_rows, T* scores, std::size_t stride, ThreadTeam& team);

    // The same for the given points only, added to what is there; tail(worker, first, last) is called for columns that
    // are complete, while they are still near.
    using Tail = std::function<void(std::size_t worker, std::size_t chunk, std::size_t first, std::size_t last)>;
    void add_product(std::span<const T* const> rows, const T* coefficients, std::size_t coefficient_stride,
                     std::size_t n_rows, T* scores, std::size_t stride, ThreadTeam& team, const Tail& tail) const;

    static constexpr std::size_t kChunk = 192;  // columns that are worked on together
    std::size_t n_chunks() const { return (size() + kChunk - 1) / kChunk; }

    Poll poll = [] {};

  protected:
    std::vector<T> diagonal_;
};

// Kept whole, computed once: size()^2 numbers.
template <class T>
class StoredGram final : public Gram<T> {
  public:
    StoredGram(const KernelFunction& function, const Points<T>& points, std::size_t n_threads, const Poll& between);
    void rows(std::span<const std::int32_t> points, const T** out, ThreadTeam& team) override;
    static std::size_t bytes(std::size_t n);
    const T* data() const { return values_.data(); }
    std::size_t stride() const { return stride_; }

  private:
    std::size_t stride_;
    Aligned<T> values_;
};

// A matrix that belongs to the caller.
template <class T>
class BorrowedGram final : public Gram<T> {
  public:
    BorrowedGram(const T* values, std::size_t n, std::size_t stride);
    void rows(std::span<const std::int32_t> points, const T** out, ThreadTeam& team) override;

  private:
    const T* values_;
    std::size_t stride_;
};

// Rows computed when asked for; the ones used last are kept, within a budget of bytes. fill(points, first row, stride)
// computes whole rows.
template <class T>
class CachedGram final : public Gram<T> {
  public:
    using Fill = std::function<void(std::span<const std::int32_t>, T* const* rows, ThreadTeam&)>;
    CachedGram(std::vector<T> diagonal, std::size_t budget, Fill fill);
    void rows(std::span<const std::int32_t> points, const T** out, ThreadTeam& team) override;
    std::size_t most_rows() const override { return std::min(this->size(), n_slots_); }

    // The rows of a kernel between points.
    static Fill from_points(const KernelFunction& function, const Points<T>& points);

  private:
    void used_now(std::size_t slot);

    std::size_t stride_, n_slots_;
    Aligned<T> slots_;
    std::vector<std::int32_t> slot_of_, owner_;  // point -> slot or -1, slot -> point or -1
    std::vector<std::size_t> newer_, older_;     // slots in the order of their last use, a ring closed by n_slots_
    Fill fill_;
};

// Nothing kept but the points, which must be bits: their values cost less than the memory to keep them.
template <class T>
class StreamedGram final : public Gram<T> {
  public:
    StreamedGram(const KernelFunction& function, std::shared_ptr<const Points<T>> points);
    void rows(std::span<const std::int32_t> points, const T** out, ThreadTeam& team) override;
    void product(const T* coefficients, std::size_t n_rows, T* scores, std::size_t stride, ThreadTeam& team) override;
    bool is_streamed() const override { return true; }
    void block(std::span<const std::int32_t> points, std::size_t first, std::size_t last, T* out,
               std::size_t stride) const override;
    void between(std::span<const std::int32_t> points, T* out, std::size_t stride) const override;

  private:
    KernelFunction function_;
    std::shared_ptr<const Points<T>> points_;
};

// K = features features', kept as features [n][rank]: products only.
template <class T>
class FactoredGram final : public Gram<T> {
  public:
    FactoredGram(const T* features, std::size_t n, std::size_t rank);
    void rows(std::span<const std::int32_t> points, const T** out, ThreadTeam& team) override;
    void product(const T* coefficients, std::size_t n_rows, T* scores, std::size_t stride, ThreadTeam& team) override;

  private:
    Aligned<T> columns_;  // [rank][padded n]
    std::size_t rank_, stride_;
};

}  // namespace dualfield
