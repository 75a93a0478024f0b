// Second derivatives of the losses.
//
//   H = sum_i c_i A_i' Cov_i A_i / T,
//
// with Cov_i the covariance of the parts of example i, which its structure gives a direction at a time. Where examples
// are labelled in part, the covariance among the labellings that are allowed is subtracted.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dualfield/core/parallel.hpp"
#include "dualfield/objectives/objective.hpp"
#include "dualfield/structures/slope.hpp"

namespace dualfield {

// What one thread computes with.
class Objective::Curvature {
  public:
    static constexpr std::uint32_t kNoRow = 0xffffffffu;

    Curvature(const Objective& objective)
        : objective_(objective),
          problem_(objective.problem_),
          layout_(problem_.structure->parts()),
          worker_(problem_),
          direction_(problem_),
          slope_(problem_.structure->slope()) {
        if (!slope_)
            throw std::invalid_argument(
                "directional is not answered for this structure: there are no second derivatives");
        if (problem_.temperature == 0.0)
            throw std::invalid_argument("the temperature is 0: there are no second derivatives");
        scratch_.require(problem_.scores->scratch_size());
        for (std::size_t i = 0; i < problem_.n_examples(); ++i) most_parts_ = std::max(most_parts_, n_parts(i));
    }

    // product += H_i v of some examples; false where a score is not finite.
    bool multiply(const double* w, const double* v, Examples examples, double* product) {
        worker_.chunk.compute(w, 1.0, examples, true);
        direction_.compute(v, 1.0, examples, false);
        const PartSums sums = objective_.require_sums(worker_, examples);
        const auto add = [&](double sign) {
            for (std::size_t i = examples.first; i < examples.last; ++i) {
                if (!begin(i)) return false;
                const PartSums own = problem_.structure->sums_of(i, examples.first, sums);
                slope_->derive(direction_.of(i), own);
                problem_.scores->add(i, own, sign * problem_.weights[i], product, scratch_.data());
            }
            return true;
        };
        if (!add(1.0)) return false;
        if (!problem_.allowed) return true;
        worker_.chunk.forbid(examples);
        return add(-1.0);
    }

    // What is asked for: for each weight the row of the matrix that it has, if any, and where sums of examples go. Two
    // sums find room in one matrix, one on each side of the diagonal, which is kept apart.
    struct Sum {
        std::span<const std::uint32_t> rows;
        std::size_t size;
        double* matrix;  // [size][size]
        bool above;
        double* diagonal;  // [size]
    };
    // Adds the mean of H_i at some points.
    bool add(std::span<const double* const> points, std::size_t example, const Sum& out) {
        const Examples one{example, example + 1};
        const std::size_t n = n_parts(example);
        const double scale = problem_.weights[example] / (problem_.temperature * static_cast<double>(points.size()));
        double* all = covariance_.require(checked_product(most_parts_, most_parts_));
        std::fill_n(all, n * n, 0.0);
        for (const double* w : points) {
            worker_.chunk.compute(w, 1.0, one, true);
            if (!begin(example)) return false;
            slope_->add_covariance(layout_, example, scale, all);
            if (!problem_.allowed) continue;
            worker_.chunk.forbid(one);
            if (!begin(example)) return false;
            slope_->add_covariance(layout_, example, -scale, all);
        }
        list_weights(example, out);
        project(n, all, out);
        return true;
    }

  private:
    bool begin(std::size_t example) {
        const Status status = slope_->begin(example, worker_.chunk.of(example));
        if (status == Status::impossible)
            throw std::invalid_argument("Example " + std::to_string(example) +
                                        " has no labelling that its labels and the constraints allow.");
        return status == Status::ok;
    }

    std::size_t n_parts(std::size_t example) const { return layout_.n_own(example) + layout_.n_shared; }

    // A' Cov A: the covariances of each part with the scores that the weights make, then their sums over the parts that
    // each weight scores. Most weights score one part of an example: the first one of each is treated apart.
    void project(std::size_t n, const double* covariance, const Sum& sum) {
        const std::size_t m = rows_.size();
        double* moved = moved_.require(std::max<std::size_t>(checked_product(n, m), 1));  // [part][m]
        const std::uint32_t *rows = rows_.data(), *firsts = parts_.data();
        const double* factors = factors_.data();
        for (std::size_t part = 0; part < n; ++part) {
            if (!is_scored_[part]) continue;
            const double* row = covariance + part * n;
            double* out = moved + part * m;
            for (std::size_t k = 0; k < m; ++k) out[k] = factors[k] * row[firsts[k]];
            for (std::size_t at = m; at < parts_.size(); ++at) out[owners_[at - m]] += factors[at] * row[parts_[at]];
        }
        double* total = total_.require(std::max<std::size_t>(m, 1));
        std::size_t rest = m;
        for (std::size_t j = 0; j < m; ++j) {
            const std::size_t begin = sum.above ? j : 0, end = sum.above ? m : j + 1;
            const auto take = [&](std::size_t at) {
                const double *row = moved + parts_[at] * m, factor = factors[at];
                for (std::size_t k = begin; k < end; ++k) total[k] += factor * row[k];
            };
            std::fill(total + begin, total + end, 0.0);
            take(j);
            for (; rest < parts_.size() && owners_[rest - m] == j; ++rest) take(rest);
            sum.diagonal[rows[j]] += total[j];
            total[j] = 0.0;
            double* out = sum.matrix + rows[j] * sum.size;
            for (std::size_t k = begin; k < end; ++k) out[rows[k]] += total[k];
        }
    }
    // The weights that are asked for and score some part, each with its parts and factors.
    void list_weights(std::size_t example, const Sum& sum) {
        problem_.scores->list_weights(example, weights_);
        const std::size_t n = weights_.begins.size() - 1;
        const auto for_rows = [&](auto use) {
            for (std::size_t part = 0; part < n; ++part)
                for (std::size_t at = weights_.begins[part]; at < weights_.begins[part + 1]; ++at)
                    if (const std::uint32_t row = sum.rows[weights_.entries[at].weight]; row != kNoRow)
                        use(part, row, weights_.entries[at].factor);
        };
        counts_.resize(sum.size, 0);
        rows_.clear();
        is_scored_.assign(n, 0);
        for_rows([&](std::size_t part, std::uint32_t row, double) {
            if (counts_[row]++ == 0) rows_.push_back(row);
            is_scored_[part] = 1;
        });
        std::sort(rows_.begin(), rows_.end());
        // The first part of every row, then all others, row by row.
        const auto m = static_cast<std::uint32_t>(rows_.size());
        owners_.clear();
        next_.resize(sum.size);
        for (std::uint32_t k = 0; k < m; ++k) {
            next_[rows_[k]] = {k, m + static_cast<std::uint32_t>(owners_.size())};
            owners_.insert(owners_.end(), counts_[rows_[k]] - 1, k);
            counts_[rows_[k]] = 0;
        }
        parts_.resize(m + owners_.size());
        factors_.resize(parts_.size());
        for_rows([&](std::size_t part, std::uint32_t row, double factor) {
            Next& next = next_[row];
            const std::uint32_t at = next.first == kNoRow ? next.other++ : std::exchange(next.first, kNoRow);
            parts_[at] = static_cast<std::uint32_t>(part);
            factors_[at] = factor;
        });
    }

    const Objective& objective_;
    const Problem& problem_;
    const PartLayout& layout_;
    Worker worker_;
    ChunkScores direction_;
    std::unique_ptr<Slope> slope_;
    Buffer scratch_, covariance_, moved_, total_;
    PartWeights weights_;
    std::size_t most_parts_ = 1;
    // Of the weights that score any part: their rows; a part of each, then the others and whose they are.
    std::vector<std::uint32_t> rows_, parts_, owners_;
    std::vector<double> factors_;
    struct Next {
        std::uint32_t first, other;
    };
    std::vector<Next> next_;               // [size]: where the next part of a row goes
    std::vector<std::uint32_t> counts_;    // [size]: zeros between examples
    std::vector<std::uint8_t> is_scored_;  // [n parts]
};

bool Objective::hessian_product(const double* w, const double* v, double* product) {
    std::vector<std::unique_ptr<Curvature>> all;
    for (std::size_t i = 0; i < n_threads_; ++i) all.push_back(std::make_unique<Curvature>(*this));
    std::atomic<bool> is_finite = true;
    sum_shards(product, [&](std::size_t worker, std::size_t s, double* vector) {
        for (std::size_t c = shards_[s]; c < shards_[s + 1]; ++c)
            if (!all[worker]->multiply(w, v, {chunks_[c], chunks_[c + 1]}, vector)) is_finite = false;
    });
    return is_finite;
}

bool Objective::hessian(std::span<const double* const> points, std::span<const std::int64_t> places, double* hessian) {
    const std::size_t n = problem_.n_examples(), size = places.size(), middle = n / 2;
    std::vector<std::uint32_t> rows(problem_.size(), Curvature::kNoRow);
    for (std::size_t j = 0; j < size; ++j) rows[static_cast<std::size_t>(places[j])] = static_cast<std::uint32_t>(j);
    std::vector<std::unique_ptr<Curvature>> all;
    for (std::size_t i = 0; i < n_threads_; ++i) all.push_back(std::make_unique<Curvature>(*this));
    std::fill_n(hessian, checked_product(size, size), 0.0);
    std::array<std::vector<double>, 2> diagonals{std::vector<double>(size), std::vector<double>(size)};
    std::atomic<bool> is_finite = true;
    // Two sums, whatever the number of threads.
    parallel_for(2, n_threads_, [&](std::size_t worker, std::size_t half) {
        const Curvature::Sum sum{rows, size, hessian, half == 0, diagonals[half].data()};
        for (std::size_t i = half == 0 ? 0 : middle; i < (half == 0 ? middle : n); ++i)
            if (!all[worker]->add(points, i, sum)) is_finite = false;
    });
    for (std::size_t j = 0; j < size; ++j) hessian[j * size + j] = diagonals[0][j] + diagonals[1][j];
    // By squares, which stay in the caches.
    constexpr std::size_t kSquare = 32;
    for (std::size_t top = 0; top < size; top += kSquare)
        for (std::size_t left = top; left < size; left += kSquare)
            for (std::size_t i = top; i < std::min(size, top + kSquare); ++i)
                for (std::size_t j = std::max(i + 1, left); j < std::min(size, left + kSquare); ++j)
                    hessian[i * size + j] = hessian[j * size + i] = hessian[i * size + j] + hessian[j * size + i];
    return is_finite;
}

}  // namespace dualfield
