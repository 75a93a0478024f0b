#include "dualfield/kernels/gram.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "dualfield/vector/routines.hpp"

namespace dualfield {

namespace {

// Rows of a power of two times 4 kB would fall into the same cache sets.
template <class T>
std::size_t row_stride(std::size_t n) {
    const std::size_t padded = padded_to_panels<T>(n);
    return padded % 1024 == 0 ? padded + kPanel<T> : padded;
}

constexpr std::size_t kRowsAtOnce = 256;  // of a product: as many as keep a chunk of columns in the nearest caches

}  // namespace

template <class T>
void Gram<T>::product(const T* coefficients, std::size_t n_rows, T* scores, std::size_t stride, ThreadTeam& team) {
    for (std::size_t r = 0; r < n_rows; ++r) std::fill_n(scores + r * stride, size(), T(0));
    const std::size_t step = std::min(most_rows(), kRowsAtOnce);
    std::vector<std::int32_t> points(step);
    std::vector<const T*> pointers(step);
    for (std::size_t first = 0; first < size(); first += step) {
        const std::size_t n = std::min(step, size() - first);
        std::iota(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(n), static_cast<std::int32_t>(first));
        rows(std::span(points).first(n), pointers.data(), team);
        add_product(std::span<const T* const>(pointers.data(), n), coefficients + first * n_rows, n_rows, n_rows,
                    scores, stride, team, nullptr);
        poll();
    }
}

template <class T>
void Gram<T>::add_product(std::span<const T* const> rows, const T* coefficients, std::size_t coefficient_stride,
                          std::size_t n_rows, T* scores, std::size_t stride, ThreadTeam& team, const Tail& tail) const {
    const auto& native = routines().kernel<T>();
    team.run(n_chunks(), [&](std::size_t worker, std::size_t chunk) {
        const std::size_t first = chunk * kChunk, last = std::min(size(), first + kChunk);
        native.expand(rows.data(), rows.size(), coefficients, coefficient_stride, n_rows, scores, stride, first, last);
        if (tail) tail(worker, chunk, first, last);
    });
}

template <class T>
void Gram<T>::block(std::span<const std::int32_t>, std::size_t, std::size_t, T*, std::size_t) const {
    throw std::logic_error("a kernel matrix with rows has no blocks");
}

template <class T>
void Gram<T>::between(std::span<const std::int32_t>, T*, std::size_t) const {
    throw std::logic_error("a kernel matrix with rows has no blocks");
}

template <class T>
StoredGram<T>::StoredGram(const KernelFunction& function, const Points<T>& points, std::size_t n_threads,
                          const Poll& between)
    : stride_(row_stride<T>(points.size())), values_(checked_product(points.size(), row_stride<T>(points.size()))) {
    const std::size_t n = points.size();
    this->diagonal_.resize(n);
    kernel_diagonal(function, points, this->diagonal_.data());
    // Blocks on and above the diagonal; the ones below are their transposes.
    constexpr std::size_t kBlock = 192;
    const std::size_t n_blocks = (n + kBlock - 1) / kBlock;
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t a = 0; a < n_blocks; ++a)
        for (std::size_t b = a; b < n_blocks; ++b) pairs.emplace_back(a, b);
    std::vector<Aligned<T>> scratch(n_threads);
    ThreadTeam team(n_threads);
    constexpr std::size_t kBetweenPolls = 256;
    for (std::size_t start = 0; start < pairs.size(); start += kBetweenPolls) {
        team.run(std::min(kBetweenPolls, pairs.size() - start), [&](std::size_t worker, std::size_t task) {
            const auto [a, b] = pairs[start + task];
            const std::size_t row = a * kBlock, column = b * kBlock;
            const std::size_t n_rows = std::min(kBlock, n - row), n_columns = std::min(kBlock, n - column);
            if (scratch[worker].size() == 0) scratch[worker] = Aligned<T>(kBlock * kBlock);
            T* block = scratch[worker].data();
            std::int32_t list[kBlock];
            std::iota(list, list + n_rows, static_cast<std::int32_t>(row));
            kernel_block(function, points, std::span<const std::int32_t>(list, n_rows), points, column,
                         column + n_columns, block, kBlock);
            for (std::size_t i = 0; i < n_rows; ++i)
                std::copy_n(block + i * kBlock, n_columns, values_.data() + (row + i) * stride_ + column);
            constexpr std::size_t kPatch = 16;
            for (std::size_t j0 = 0; a != b && j0 < n_columns; j0 += kPatch)
                for (std::size_t i0 = 0; i0 < n_rows; i0 += kPatch)
                    for (std::size_t j = j0; j < std::min(n_columns, j0 + kPatch); ++j) {
                        T* target = values_.data() + (column + j) * stride_ + row;
                        for (std::size_t i = i0; i < std::min(n_rows, i0 + kPatch); ++i)
                            target[i] = block[i * kBlock + j];
                    }
        });
        between();
    }
    for (std::size_t i = 0; i < n; ++i)
        std::fill(values_.data() + i * stride_ + n, values_.data() + (i + 1) * stride_, T(0));
}

template <class T>
void StoredGram<T>::rows(std::span<const std::int32_t> points, const T** out, ThreadTeam&) {
    for (std::size_t i = 0; i < points.size(); ++i)
        out[i] = values_.data() + static_cast<std::size_t>(points[i]) * stride_;
}

template <class T>
std::size_t StoredGram<T>::bytes(std::size_t n) {
    return saturated_product(n, row_stride<T>(n), sizeof(T));
}

template <class T>
BorrowedGram<T>::BorrowedGram(const T* values, std::size_t n, std::size_t stride) : values_(values), stride_(stride) {
    this->diagonal_.resize(n);
    for (std::size_t i = 0; i < n; ++i) this->diagonal_[i] = values[i * stride + i];
}

template <class T>
void BorrowedGram<T>::rows(std::span<const std::int32_t> points, const T** out, ThreadTeam&) {
    for (std::size_t i = 0; i < points.size(); ++i) out[i] = values_ + static_cast<std::size_t>(points[i]) * stride_;
}

template <class T>
CachedGram<T>::CachedGram(std::vector<T> diagonal, std::size_t budget, Fill fill) : fill_(std::move(fill)) {
    this->diagonal_ = std::move(diagonal);
    const std::size_t n = this->size();
    stride_ = row_stride<T>(n);
    // At least a working set's worth of rows: linear in n, whatever the budget.
    constexpr std::size_t kFewest = 64;
    n_slots_ = std::clamp<std::size_t>(budget / (stride_ * sizeof(T)), std::min(n, kFewest), n);
    slots_ = Aligned<T>(checked_product(n_slots_, stride_));
    slot_of_.assign(n, -1);
    owner_.assign(n_slots_, -1);
    // From the end of the ring to the newer: the oldest first.
    newer_.resize(n_slots_ + 1);
    older_.resize(n_slots_ + 1);
    for (std::size_t slot = 0; slot <= n_slots_; ++slot) {
        newer_[slot] = slot == n_slots_ ? 0 : slot + 1;
        older_[slot] = slot == 0 ? n_slots_ : slot - 1;
    }
}

template <class T>
void CachedGram<T>::used_now(std::size_t slot) {
    newer_[older_[slot]] = newer_[slot];
    older_[newer_[slot]] = older_[slot];
    const std::size_t newest = older_[n_slots_];
    newer_[newest] = slot;
    older_[slot] = newest;
    newer_[slot] = n_slots_;
    older_[n_slots_] = slot;
}

template <class T>
void CachedGram<T>::rows(std::span<const std::int32_t> points, const T** out, ThreadTeam& team) {
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const std::int32_t slot = slot_of_[static_cast<std::size_t>(points[i])];
        if (slot < 0) {
            missing.push_back(i);
        } else {
            used_now(static_cast<std::size_t>(slot));
            out[i] = slots_.data() + static_cast<std::size_t>(slot) * stride_;
        }
    }
    if (missing.empty()) return;
    // Into the slots that were not used for longest; those of this call are the newest and not among them.
    std::vector<std::int32_t> wanted;
    std::vector<T*> targets;
    for (const std::size_t i : missing) {
        std::int32_t& slot_of_point = slot_of_[static_cast<std::size_t>(points[i])];
        if (slot_of_point < 0) {
            const std::size_t slot = newer_[n_slots_];
            if (owner_[slot] >= 0) slot_of_[static_cast<std::size_t>(owner_[slot])] = -1;
            owner_[slot] = points[i];
            slot_of_point = static_cast<std::int32_t>(slot);
            used_now(slot);
            wanted.push_back(points[i]);
            targets.push_back(slots_.data() + slot * stride_);
        }
        out[i] = slots_.data() + static_cast<std::size_t>(slot_of_point) * stride_;
    }
    try {
        fill_(wanted, targets.data(), team);
    } catch (...) {
        // These slots hold nothing that may be taken for a row.
        for (const std::int32_t point : wanted) {
            owner_[static_cast<std::size_t>(slot_of_[static_cast<std::size_t>(point)])] = -1;
            slot_of_[static_cast<std::size_t>(point)] = -1;
        }
        throw;
    }
}

template <class T>
typename CachedGram<T>::Fill CachedGram<T>::from_points(const KernelFunction& function, const Points<T>& points) {
    return [function, &points](std::span<const std::int32_t> wanted, T* const* rows, ThreadTeam& team) {
        constexpr std::size_t kColumns = 512;
        const std::size_t n = points.size(), n_tasks = (n + kColumns - 1) / kColumns;
        team.run(n_tasks, [&](std::size_t, std::size_t task) {
            const std::size_t first = task * kColumns, last = std::min(n, first + kColumns);
            if (points.is_bits()) {  // which gain nothing from tiles of several rows, and need no detour
                for (std::size_t i = 0; i < wanted.size(); ++i)
                    kernel_block(function, points, wanted.subspan(i, 1), points, first, last, rows[i] + first, 0);
                return;
            }
            constexpr std::size_t kRows = 12;
            T block[kRows * kColumns];
            for (std::size_t i = 0; i < wanted.size(); i += kRows) {
                const std::size_t n_rows = std::min(kRows, wanted.size() - i);
                kernel_block(function, points, wanted.subspan(i, n_rows), points, first, last, block, kColumns);
                for (std::size_t r = 0; r < n_rows; ++r)
                    std::copy_n(block + r * kColumns, last - first, rows[i + r] + first);
            }
        });
    };
}

template <class T>
StreamedGram<T>::StreamedGram(const KernelFunction& function, std::shared_ptr<const Points<T>> points)
    : function_(function), points_(std::move(points)) {
    this->diagonal_.resize(points_->size());
    kernel_diagonal(function_, *points_, this->diagonal_.data());
}

template <class T>
void StreamedGram<T>::rows(std::span<const std::int32_t>, const T**, ThreadTeam&) {
    throw std::logic_error("a streamed kernel matrix has no rows");
}

template <class T>
void StreamedGram<T>::block(std::span<const std::int32_t> points, std::size_t first, std::size_t last, T* out,
                            std::size_t stride) const {
    kernel_block(function_, *points_, points, *points_, first, last, out, stride);
}

template <class T>
void StreamedGram<T>::between(std::span<const std::int32_t> points, T* out, std::size_t stride) const {
    const BitMatrix& all = points_->bits();
    BitMatrix few{.n = points.size(), .n_features = all.n_features, .n_words = all.n_words, .words = {}};
    for (const std::int32_t point : points) {
        const std::uint64_t* words = all.row(static_cast<std::size_t>(point));
        few.words.insert(few.words.end(), words, words + all.n_words);
    }
    const Points<T> own(std::move(few), function_);
    std::vector<std::int32_t> every(points.size());
    std::iota(every.begin(), every.end(), 0);
    kernel_block(function_, own, every, own, 0, points.size(), out, stride);
}

template <class T>
void StreamedGram<T>::product(const T* coefficients, std::size_t n_rows, T* scores, std::size_t stride,
                              ThreadTeam& team) {
    constexpr std::size_t kRows = 96, kColumns = Gram<T>::kChunk;
    const std::size_t n = this->size();
    const auto& native = routines().kernel<T>();
    std::vector<Aligned<T>> blocks(team.size());
    team.run(this->n_chunks(), [&](std::size_t worker, std::size_t chunk) {
        if (blocks[worker].size() == 0) blocks[worker] = Aligned<T>(kRows * kColumns);
        T* values = blocks[worker].data();
        const std::size_t first = chunk * kColumns, last = std::min(n, first + kColumns);
        for (std::size_t r = 0; r < n_rows; ++r)
            std::fill(scores + r * stride + first, scores + r * stride + last, T(0));
        std::int32_t list[kRows];
        const T* pointers[kRows];
        for (std::size_t i = 0; i < kRows; ++i) pointers[i] = values + i * kColumns;
        for (std::size_t row = 0; row < n; row += kRows) {
            const std::size_t here = std::min(kRows, n - row);
            std::iota(list, list + here, static_cast<std::int32_t>(row));
            block({list, here}, first, last, values, kColumns);
            native.expand(pointers, here, coefficients + row * n_rows, n_rows, n_rows, scores + first, stride, 0,
                          last - first);
        }
    });
    this->poll();
}

template <class T>
FactoredGram<T>::FactoredGram(const T* features, std::size_t n, std::size_t rank)
    : columns_(checked_product(rank, row_stride<T>(n)), T(0)), rank_(rank), stride_(row_stride<T>(n)) {
    this->diagonal_.assign(n, T(0));
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < rank; ++k) {
            const T value = features[i * rank + k];
            columns_[k * stride_ + i] = value;
            this->diagonal_[i] += value * value;
        }
}

template <class T>
void FactoredGram<T>::rows(std::span<const std::int32_t>, const T**, ThreadTeam&) {
    throw std::logic_error("a factored kernel matrix has no rows");
}

template <class T>
void FactoredGram<T>::product(const T* coefficients, std::size_t n_rows, T* scores, std::size_t stride,
                              ThreadTeam& team) {
    const std::size_t n = this->size();
    std::vector<T> weights(checked_product(rank_, n_rows));
    team.run(rank_, [&](std::size_t, std::size_t k) {
        const T* column = columns_.data() + k * stride_;
        std::vector<double> sum(n_rows, 0.0);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t r = 0; r < n_rows; ++r)
                sum[r] += static_cast<double>(column[i]) * static_cast<double>(coefficients[i * n_rows + r]);
        for (std::size_t r = 0; r < n_rows; ++r) weights[k * n_rows + r] = static_cast<T>(sum[r]);
    });
    std::vector<const T*> pointers(rank_);
    for (std::size_t k = 0; k < rank_; ++k) pointers[k] = columns_.data() + k * stride_;
    for (std::size_t r = 0; r < n_rows; ++r) std::fill_n(scores + r * stride, n, T(0));
    this->add_product(pointers, weights.data(), n_rows, n_rows, scores, stride, team, nullptr);
    this->poll();
}

#define DUALFIELD_GRAM(T)           \
    template class Gram<T>;         \
    template class StoredGram<T>;   \
    template class BorrowedGram<T>; \
    template class CachedGram<T>;   \
    template class StreamedGram<T>; \
    template class FactoredGram<T>;
DUALFIELD_GRAM(float)
DUALFIELD_GRAM(double)
#undef DUALFIELD_GRAM

}  // namespace dualfield
