// What CKY keeps of a sentence: numbers for symbols of spans, in rows over the places where two spans meet.
//
//   left(i, A)[k] is the number of A over the words i to k - 1, right(j, A)[k] that over k to j - 1,
//
// so that all ways to cut the span (i, j) into B and C are one product of left(i, B) and right(j, C). Rows exist for
// symbols that some span from i, or to j, can have; most do not. Behind each row is one for sums from above.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/layout.hpp"
#include "dualfield/structures/parse_trees/grammar.hpp"
#include "dualfield/structures/parse_trees/split_task.hpp"

namespace dualfield {

class GrammarChart {
  public:
    // Numbers of symbols that a span does not have are `nothing`.
    void begin(const GrammarIndex& index, std::size_t n_words, double nothing) {
        index_ = &index;
        n_symbols_ = index.n_symbols();
        n_ = n_words;
        width_ = padded(n_words + 1);
        nothing_ = nothing;
        n_chunks_ = 0;
        free_ = end_ = nullptr;
        const std::size_t size = (n_ + 1) * n_symbols_;
        if (left_.size() < size) {
            left_.resize(size);
            right_.resize(size);
            last_start_.resize(size);
        }
        std::fill_n(left_.begin(), size, nullptr);
        std::fill_n(right_.begin(), size, nullptr);
        std::fill_n(last_start_.begin(), size, -1);
        starting_.resize(std::max(starting_.size(), n_ + 1));
        for (std::size_t i = 0; i <= n_; ++i) starting_[i].clear();
        members_.clear();
        cells_.assign((n_ + 1) * (n_ + 1), {0, 0});
    }

    std::size_t width() const { return width_; }
    std::size_t n_words() const { return n_; }
    double* left(std::size_t i, std::int32_t symbol) const {
        return left_[i * n_symbols_ + static_cast<std::size_t>(symbol)];
    }
    double* right(std::size_t j, std::int32_t symbol) const {
        return right_[j * n_symbols_ + static_cast<std::size_t>(symbol)];
    }
    double at(std::size_t i, std::size_t j, std::int32_t symbol) const {
        const double* row = left(i, symbol);
        return row ? row[j] : nothing_;
    }
    // What came from above to a symbol that the span has, through both rows.
    double& above_left(std::size_t i, std::size_t j, std::int32_t symbol) const { return left(i, symbol)[width_ + j]; }
    double& above_right(std::size_t i, std::size_t j, std::int32_t symbol) const {
        return right(j, symbol)[width_ + i];
    }
    std::span<const std::int32_t> members(std::size_t i, std::size_t j) const {
        const Cell& cell = cells_[i * (n_ + 1) + j];
        return {members_.data() + cell.first, cell.size};
    }

    // A span gets its symbols between open and close; shorter spans have theirs.
    void open(std::size_t i, std::size_t j) { cells_[i * (n_ + 1) + j] = {members_.size(), 0}; }
    void put(std::size_t i, std::size_t j, std::int32_t symbol, double value) {
        const auto at = static_cast<std::size_t>(symbol);
        double*& from = left_[i * n_symbols_ + at];
        if (!from) {
            from = row();
            starting_[i].push_back({symbol, static_cast<std::int32_t>(j)});
        }
        double*& to = right_[j * n_symbols_ + at];
        if (!to) {
            to = row();
            last_start_[j * n_symbols_ + at] = static_cast<std::int32_t>(i);
        }
        from[j] = to[i] = value;
        members_.push_back(symbol);
        ++cells_[i * (n_ + 1) + j].size;
    }

    // A pair of symbols that may make up a span, and bounds of the places where they meet.
    struct Meeting {
        std::int32_t pair, first, last;
    };
    // Those of a span, by left symbol; valid until the next call.
    std::span<const Meeting> meetings(std::size_t i, std::size_t j) {
        const std::int32_t *last_starts = last_start_.data() + j * n_symbols_, *right = index_->pair_right.data();
        const char* is_word = index_->is_word.data();
        meetings_.resize(index_->n_pairs() + 1);
        Meeting* to = meetings_.data();
        for (const auto [symbol, first_end] : starting_[i]) {
            if (static_cast<std::size_t>(first_end) >= j) break;  // later ones are longer
            const auto b = static_cast<std::size_t>(symbol);
            const bool is_left_word = is_word[b];
            for (std::int32_t p = index_->by_left[b]; p < index_->by_left[b + 1]; ++p) {
                const auto c = static_cast<std::size_t>(right[p]);
                const std::int32_t last_start = last_starts[c];
                // Symbols of single words meet others in one place.
                const std::int32_t first = is_word[c] ? last_start : first_end;
                const std::int32_t last = is_left_word ? first_end : last_start;
                *to = {p, first, last};
                to += (last_start >= first_end) & (first <= last);  // no branch, which would often be mistaken
            }
        }
        return {meetings_.data(), to};
    }

    // Sets what comes from above to a value everywhere.
    void clear_above(double value) {
        for (std::size_t c = 0; c < n_chunks_; ++c) {
            double *row = chunks_[c].data(), *end = c + 1 < n_chunks_ ? row + chunk_size() : free_;
            for (; row < end; row += 2 * width_) std::fill_n(row + width_, width_, value);
        }
    }

    // Bounds of a pair, as SplitPair wants them.
    static std::uint32_t first_place(const Meeting& pair) {
        return static_cast<std::uint32_t>(static_cast<std::size_t>(pair.first) / kLanes * kLanes);
    }
    static std::uint32_t last_place(const Meeting& pair) {
        return static_cast<std::uint32_t>(padded(static_cast<std::size_t>(pair.last) + 1));
    }

  private:
    struct Start {
        std::int32_t symbol, first_end;
    };
    struct Cell {
        std::size_t first, size;
    };
    static constexpr std::size_t kChunk = std::size_t{1} << 16;  // doubles

    std::size_t chunk_size() const { return std::max<std::size_t>(kChunk / (2 * width_), 1) * 2 * width_; }
    double* row() {
        if (free_ == end_) {
            if (n_chunks_ == chunks_.size()) chunks_.emplace_back();
            free_ = chunks_[n_chunks_++].require(std::max(kChunk, chunk_size()));
            end_ = free_ + chunk_size();
        }
        std::fill_n(free_, width_, nothing_);
        return std::exchange(free_, free_ + 2 * width_);
    }

    const GrammarIndex* index_ = nullptr;
    std::size_t n_symbols_ = 0, n_ = 0, width_ = 0, n_chunks_ = 0;
    double nothing_ = 0.0, *free_ = nullptr, *end_ = nullptr;  // what is left of the last chunk
    std::vector<double*> left_, right_;                        // [words + 1][symbols]; null: none
    std::vector<std::int32_t> last_start_;  // [words + 1][symbols]: where the last span of a symbol to a place begins
    std::vector<std::vector<Start>> starting_;
    std::vector<Meeting> meetings_;
    std::vector<Buffer> chunks_;
    std::vector<Cell> cells_;  // [words + 1][words + 1]
    std::vector<std::int32_t> members_;
};

}  // namespace dualfield
