#include "dualfield/kernels/bit_counts.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "dualfield/vector/routines.hpp"

namespace dualfield {

namespace {

template <class T, class Count>
void look_up_row(const T* table, const Count* counts, std::size_t n, T* out) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 8
#endif
    for (std::size_t j = 0; j < n; ++j) out[j] = table[counts[j]];
}

}  // namespace

template <class T>
BitCounts::BitCounts(const KernelFunction& function, const Points<T>& points, std::size_t n_threads,
                     const Poll& between)
    : n_(points.size()) {
    const BitMatrix& bits = points.bits();
    if (bits.n_features > kMostFeatures) throw std::invalid_argument("counts of at most 65535 features can be kept");
    const bool is_small = bits.n_features <= 255;
    if (is_small) {
        small_ = Aligned<std::uint8_t>(checked_product(n_, n_));
    } else {
        large_ = Aligned<std::uint16_t>(checked_product(n_, n_));
    }
    // The counts themselves, as if they were values of a kernel: whole numbers that a float holds exactly.
    std::vector<float> identity(bits.n_features + 1);
    std::iota(identity.begin(), identity.end(), 0.0F);
    constexpr std::size_t kColumns = 1024, kRowsBetweenPolls = 1024;
    ThreadTeam team(n_threads);
    for (std::size_t start = 0; start < n_; start += kRowsBetweenPolls) {
        team.run(std::min(kRowsBetweenPolls, n_ - start), [&](std::size_t, std::size_t task) {
            const std::size_t i = start + task;
            float counts[kColumns];
            for (std::size_t first = 0; first < n_; first += kColumns) {
                const std::size_t here = std::min(kColumns, n_ - first);
                routines().kernel<float>().bit_row({.point = bits.row(i),
                                                    .columns = bits.row(first),
                                                    .n_words = bits.n_words,
                                                    .n = here,
                                                    .common = counts_common(function),
                                                    .table = identity.data(),
                                                    .out = counts});
                const std::size_t at = i * n_ + first;
                for (std::size_t j = 0; is_small && j < here; ++j)
                    small_[at + j] = static_cast<std::uint8_t>(static_cast<std::int32_t>(counts[j]));
                for (std::size_t j = 0; !is_small && j < here; ++j)
                    large_[at + j] = static_cast<std::uint16_t>(static_cast<std::int32_t>(counts[j]));
            }
        });
        between();
    }
}

template <class T>
void BitCounts::look_up(const std::vector<T>& table, std::size_t i, std::size_t first, std::size_t last, T* out) const {
    const std::size_t at = i * n_ + first;
    if (small_.size() != 0) {
        look_up_row(table.data(), small_.data() + at, last - first, out);
    } else {
        look_up_row(table.data(), large_.data() + at, last - first, out);
    }
}

template <class T>
typename CachedGram<T>::Fill BitCounts::rows(std::shared_ptr<const BitCounts> counts, std::vector<T> table) {
    return [counts = std::move(counts), table = std::move(table)](std::span<const std::int32_t> wanted, T* const* rows,
                                                                  ThreadTeam& team) {
        constexpr std::size_t kColumns = 4096;
        const std::size_t n = counts->n_;
        team.run((n + kColumns - 1) / kColumns, [&](std::size_t, std::size_t task) {
            const std::size_t first = task * kColumns, last = std::min(n, first + kColumns);
            for (std::size_t i = 0; i < wanted.size(); ++i)
                counts->look_up(table, static_cast<std::size_t>(wanted[i]), first, last, rows[i] + first);
        });
    };
}

#define DUALFIELD_COUNTS(T)                                                                                   \
    template BitCounts::BitCounts(const KernelFunction&, const Points<T>&, std::size_t, const Poll&);         \
    template void BitCounts::look_up(const std::vector<T>&, std::size_t, std::size_t, std::size_t, T*) const; \
    template typename CachedGram<T>::Fill BitCounts::rows(std::shared_ptr<const BitCounts>, std::vector<T>);
DUALFIELD_COUNTS(float)
DUALFIELD_COUNTS(double)
#undef DUALFIELD_COUNTS

}  // namespace dualfield
