// The scores of all points of a table, as an ascent keeps them: F = K B, by what they score, [width][n_points].
//
// A *set* of points is worked with at a time: their scores and the part of the matrix between them are copied out,
// examples are visited with these, and what has changed goes into all scores together when the set is closed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/memory.hpp"
#include "kernel_proof.hpp"
#include "score_update.hpp"

namespace dualfield {

// Columns are read as well as rows: an odd number of cache lines between rows spreads a column over all sets.
template <class T>
std::size_t spread(std::size_t n) {
    const std::size_t lines = padded_to_panels<T>(n) / kPanel<T>;
    return (lines | 1) * kPanel<T>;
}

template <class T>
class KernelScores {
  public:
    // scale: as of DualBlocks. most_members: of an example. set_size: points that a set may have, if the cache has room
    // for their rows.
    KernelScores(Gram<T>& gram, std::size_t width, double scale, std::size_t most_members, std::size_t set_size,
                 ThreadTeam& team)
        : gram_(gram),
          team_(team),
          update_(gram, team, width),
          width_(width),
          scale_(scale),
          stride_(spread<T>(gram.size())),
          set_size_(std::min(std::max(set_size, most_members), gram.most_rows())),
          scores_(checked_product(width, stride_), T(0)),
          local_of_(gram.size(), -1) {
        if (set_size_ < most_members)
            throw std::invalid_argument("The cache is too small for the kernel rows of the largest example.");
    }

    std::size_t width() const { return width_; }
    std::size_t n_points() const { return gram_.size(); }
    ScoresOfPoints<T> all() const { return {scores_.data(), stride_}; }
    ScoresOfPoints<T> mean() const { return {mean_.data(), stride_}; }

    // F = K coefficients; or zero, or as given.
    void multiply(const std::vector<double>& coefficients) {
        rounded_.assign(coefficients.begin(), coefficients.end());
        gram_.product(rounded_.data(), width_, scores_.data(), stride_, team_);
    }
    void clear() { std::fill(scores_.begin(), scores_.end(), T(0)); }
    void take(ScoresOfPoints<double> exact) {
        for (std::size_t k = 0; k < width_; ++k)
            for (std::size_t j = 0; j < n_points(); ++j)
                scores_[k * stride_ + j] = static_cast<T>(exact.values[k * exact.stride + j]);
    }
    // The mean over time: begins at the scores of now, or moves towards them by a share.
    void begin_mean() {
        mean_ = Aligned<T>(scores_.size());
        std::copy(scores_.begin(), scores_.end(), mean_.begin());
    }
    void move_mean(double share) {
        for (std::size_t j = 0; j < scores_.size(); ++j) mean_[j] += static_cast<T>(share) * (scores_[j] - mean_[j]);
    }

    // A set
    void begin_set() { points_.clear(); }
    bool has_room(std::size_t n_more) const { return points_.size() + n_more <= set_size_; }
    std::size_t n_in_set() const { return points_.size(); }
    void take_in(std::span<const std::int32_t> members) {
        for (const std::int32_t point : members) {
            if (local_of_[static_cast<std::size_t>(point)] >= 0) continue;
            local_of_[static_cast<std::size_t>(point)] = static_cast<std::int32_t>(points_.size());
            points_.push_back(point);
        }
    }
    void open_set() {
        if (!gram_.is_streamed()) {
            rows_.resize(points_.size());
            gram_.rows(points_, rows_.data(), team_);
        }
        copy_out(points_.size());
    }
    // Scores [m][width] and kernel values [m][m] of the members of an example, as it sees them.
    void read(std::span<const std::int32_t> members, double* scores, double* gram) {
        find(members);
        const std::size_t m = members.size();
        for (std::size_t a = 0; a < m; ++a) {
            for (std::size_t k = 0; k < width_; ++k)
                scores[a * width_ + k] = scale_ * set_scores_.data()[k * set_stride_ + locals_[a]];
            for (std::size_t b = 0; b < m; ++b)
                gram[a * m + b] = scale_ * scale_ * set_gram_.data()[locals_[a] * set_stride_ + locals_[b]];
        }
    }
    // What an example adds to c (u - mu), [m][width].
    void change(std::span<const std::int32_t> members, const double* change) {
        find(members);
        const std::size_t n = points_.size();
        for (std::size_t a = 0; a < members.size(); ++a) {
            const double* row = set_gram_.data() + locals_[a] * set_stride_;
            for (std::size_t k = 0; k < width_; ++k) {
                const double by = scale_ * change[a * width_ + k];
                if (by == 0.0) continue;
                set_change_.data()[locals_[a] * width_ + k] += by;
                double* target = set_scores_.data() + k * set_stride_;
                for (std::size_t b = 0; b < n; ++b) target[b] += by * row[b];
            }
        }
    }
    // The changes of the set into the coefficients and the scores of all points.
    void close_set(std::vector<double>& coefficients) {
        const std::size_t n = points_.size();
        const double* change = set_change_.data();
        check_curvature<T>(set_gram_.data(), set_stride_, change, n, width_);
        std::size_t n_changed = 0;
        for (std::size_t a = 0; a < n; ++a) {
            double* target = coefficients.data() + static_cast<std::size_t>(points_[a]) * width_;
            for (std::size_t k = 0; k < width_; ++k) {
                target[k] += change[a * width_ + k];
                n_changed += change[a * width_ + k] != 0.0;
            }
        }
        const bool is_dense = static_cast<double>(n_changed) >= kDense * static_cast<double>(n * width_);
        update_.add(points_, rows_, change, is_dense, scores_.data(), stride_);
        for (const std::int32_t point : points_) local_of_[static_cast<std::size_t>(point)] = -1;
    }

  private:
    static constexpr double kDense = 0.3;  // from this share of changed coefficients on all of them are multiplied

    void find(std::span<const std::int32_t> members) {
        locals_.clear();
        for (const std::int32_t point : members)
            locals_.push_back(static_cast<std::size_t>(local_of_[static_cast<std::size_t>(point)]));
    }

    // The part of the matrix between the points of the set, and their scores.
    void copy_out(std::size_t n) {
        set_stride_ = spread<double>(n);
        double* gram = set_gram_.require(checked_product(n, set_stride_));
        double* scores = set_scores_.require(checked_product(width_, set_stride_));
        std::fill_n(set_change_.require(checked_product(n, width_)), n * width_, 0.0);
        if (gram_.is_streamed()) {
            const std::size_t stride = padded_to_panels<T>(n);
            if (between_.size() < n * stride) between_ = Aligned<T>(checked_product(n, stride));
            gram_.between(points_, between_.data(), stride);
            for (std::size_t a = 0; a < n; ++a) std::copy_n(between_.data() + a * stride, n, gram + a * set_stride_);
        } else {
            for (std::size_t a = 0; a < n; ++a)
                for (std::size_t b = 0; b < n; ++b)
                    gram[a * set_stride_ + b] = static_cast<double>(rows_[a][static_cast<std::size_t>(points_[b])]);
        }
        check_pairs(gram, set_stride_, n);
        for (std::size_t k = 0; k < width_; ++k)
            for (std::size_t a = 0; a < n; ++a) scores[k * set_stride_ + a] = all().at(k, points_[a]);
    }

    Gram<T>& gram_;
    ThreadTeam& team_;
    ScoreUpdate<T> update_;
    std::size_t width_;
    double scale_;
    std::size_t stride_, set_size_, set_stride_ = 0;
    Aligned<T> scores_, mean_;                     // [width][stride]
    std::vector<std::int32_t> local_of_, points_;  // place of a point in the set, or -1; points of the set
    std::vector<std::size_t> locals_;
    std::vector<const T*> rows_;
    std::vector<T> rounded_;
    Aligned<T> between_;
    Buffer set_gram_, set_scores_, set_change_;
};

}  // namespace dualfield
