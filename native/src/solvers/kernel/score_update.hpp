// Changes of the coefficients of a few points, carried over to the scores of all: nearly all of the work of an ascent.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dualfield/core/memory.hpp"
#include "dualfield/kernels/gram.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

template <class T>
class ScoreUpdate {
  public:
    ScoreUpdate(Gram<T>& gram, ThreadTeam& team, std::size_t n_labels)
        : gram_(gram), team_(team), n_labels_(n_labels) {}

    // scores [K][stride] += K[points] change, change [n][K]. rows are those of the points, unless values are streamed;
    // is_dense says that most of the change is not zero.
    void add(std::span<const std::int32_t> points, const std::vector<const T*>& rows, const double* change,
             bool is_dense, T* scores, std::size_t stride) {
        if (is_dense)
            rounded_.assign(change, change + points.size() * n_labels_);
        else
            sort_by_label(points.size(), change);
        blocks_of_values_.resize(team_.size());
        team_.run(gram_.n_chunks(), [&](std::size_t worker, std::size_t chunk) {
            add_chunk(points, rows, is_dense, blocks_of_values_[worker], chunk, scores, stride);
        });
    }

  private:
    // Label by label, the points whose coefficient of that label has changed.
    void sort_by_label(std::size_t n, const double* change) {
        rounded_.clear();
        label_points_.clear();
        starts_.assign(1, 0);
        changed_.clear();
        for (std::size_t k = 0; k < n_labels_; ++k) {
            for (std::size_t a = 0; a < n; ++a) {
                if (change[a * n_labels_ + k] == 0.0) continue;
                rounded_.push_back(static_cast<T>(change[a * n_labels_ + k]));
                label_points_.push_back(a);
            }
            if (rounded_.size() == starts_.back()) continue;
            changed_.push_back(k);
            starts_.push_back(rounded_.size());
        }
    }

    // What one thread computes with: kernel values of a chunk of columns, and where their rows are.
    struct Values {
        Aligned<T> block;
        std::vector<const T*> rows, label_rows;
    };
    void add_chunk(std::span<const std::int32_t> points, const std::vector<const T*>& rows, bool is_dense,
                   Values& values, std::size_t chunk, T* scores, std::size_t stride) {
        const std::size_t n = points.size();
        constexpr std::size_t kChunk = Gram<T>::kChunk;
        const std::size_t first = chunk * kChunk, last = std::min(gram_.size(), first + kChunk);
        values.rows.resize(n);
        if (gram_.is_streamed()) {
            if (values.block.size() < n * kChunk) values.block = Aligned<T>(checked_product(n, kChunk));
            gram_.block(points, first, last, values.block.data(), kChunk);
            for (std::size_t a = 0; a < n; ++a) values.rows[a] = values.block.data() + a * kChunk;
        } else {
            for (std::size_t a = 0; a < n; ++a) values.rows[a] = rows[a] + first;
        }
        const auto& native = routines().kernel<T>();
        scores += first;
        if (is_dense) {
            native.expand(values.rows.data(), n, rounded_.data(), n_labels_, n_labels_, scores, stride, 0,
                          last - first);
            return;
        }
        values.label_rows.resize(label_points_.size());
        for (std::size_t i = 0; i < label_points_.size(); ++i) values.label_rows[i] = values.rows[label_points_[i]];
        for (std::size_t c = 0; c < changed_.size(); ++c)
            native.expand(values.label_rows.data() + starts_[c], starts_[c + 1] - starts_[c],
                          rounded_.data() + starts_[c], 1, 1, scores + changed_[c] * stride, stride, 0, last - first);
    }

    Gram<T>& gram_;
    ThreadTeam& team_;
    std::size_t n_labels_;
    std::vector<T> rounded_;
    std::vector<std::size_t> starts_, changed_, label_points_;
    std::vector<Values> blocks_of_values_;
};

}  // namespace dualfield
