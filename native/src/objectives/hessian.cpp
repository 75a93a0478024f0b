// Second derivatives of the losses.
//
//   H = sum_i c_i A_i' Cov_i A_i / T,
//
// with Cov_i the covariance of the parts of example i, which its structure gives a direction at a time. Where examples
// are labelled in part, the covariance among the labellings that are allowed is subtracted.
#include <algorithm>
#include <atomic>
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

    // hessian [size][size] += the mean of H_i at some points.
    bool add(std::span<const double* const> points, std::size_t example, double* hessian) {
        const Examples one{example, example + 1};
        const std::size_t n = layout_.n_own(example) + layout_.n_shared, cells = checked_product(n, n);
        const double scale = problem_.weights[example] / (problem_.temperature * static_cast<double>(points.size()));
        double* all = covariance_.require(std::max<std::size_t>(cells, 1));
        std::fill_n(all, cells, 0.0);
        for (const double* w : points) {
            worker_.chunk.compute(w, 1.0, one, true);
            if (!begin(example)) return false;
            slope_->add_covariance(layout_, example, scale, all);
            if (!problem_.allowed) continue;
            worker_.chunk.forbid(one);
            if (!begin(example)) return false;
            slope_->add_covariance(layout_, example, -scale, all);
        }
        project(example, n, all, hessian);
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

    // One part after another: its covariances with all others, as a vector over the weights, are added to the rows of
    // the weights that score the part. Only weights that score some part of the example are looked at.
    void project(std::size_t example, std::size_t n, double* covariance, double* hessian) {
        const std::size_t size = problem_.size();
        list_weights(example, n);
        const std::size_t m = active_.size();
        double *row = zeros(size), *own = row_.require(std::max<std::size_t>(m, 1));
        double* local = local_.require(std::max<std::size_t>(checked_product(m, m), 1));
        std::fill_n(local, m * m, 0.0);
        for (std::size_t part = 0; part < n; ++part) {
            if (begins_[part] == begins_[part + 1]) continue;
            problem_.scores->add(example, laid_out(example, covariance + part * n), 1.0, row, scratch_.data());
            for (std::size_t k = 0; k < m; ++k) {
                own[k] = row[active_[k]];
                row[active_[k]] = 0.0;
            }
            for (std::size_t at = begins_[part]; at < begins_[part + 1]; ++at) {
                double* to = local + place_[scored_[at].first] * m;
                for (std::size_t k = 0; k < m; ++k) to[k] += scored_[at].second * own[k];
            }
        }
        for (std::size_t j = 0; j < m; ++j)
            for (std::size_t k = 0; k < m; ++k) hessian[active_[j] * size + active_[k]] += local[j * m + k];
    }
    // The weights that score each part, with their factors, and all of them together.
    void list_weights(std::size_t example, std::size_t n) {
        const std::size_t size = problem_.size();
        double *unit = unit_.require(std::max<std::size_t>(n, 1)), *places = zeros(size);
        std::fill_n(unit, n, 0.0);
        begins_.assign(1, 0);
        scored_.clear();
        active_.clear();
        place_.assign(size, 0);
        for (std::size_t part = 0; part < n; ++part) {
            unit[part] = 1.0;
            problem_.scores->add(example, laid_out(example, unit), 1.0, places, scratch_.data());
            unit[part] = 0.0;
            for (std::size_t j = 0; j < size; ++j) {
                if (places[j] == 0.0) continue;
                scored_.emplace_back(j, places[j]);
                places[j] = 0.0;
                if (!std::exchange(place_[j], 1)) active_.push_back(j);
            }
            begins_.push_back(scored_.size());
        }
        std::sort(active_.begin(), active_.end());
        for (std::size_t k = 0; k < active_.size(); ++k) place_[active_[k]] = k;
    }
    // A vector over the weights; whoever adds to it takes that off again.
    double* zeros(std::size_t size) {
        if (zeros_.size() < size) zeros_.assign(size, 0.0);
        return zeros_.data();
    }
    // Numbers of all parts of an example, table by table, then those of shared ones.
    PartSums laid_out(std::size_t example, double* at) const {
        PartSums sums;
        for (std::size_t g = 0; g < layout_.tables.size(); ++g) {
            sums.own[g] = at;
            at += layout_.tables[g].n_rows(example) * layout_.tables[g].width;
        }
        sums.shared = at;
        return sums;
    }

    const Objective& objective_;
    const Problem& problem_;
    const PartLayout& layout_;
    Worker worker_;
    ChunkScores direction_;
    std::unique_ptr<Slope> slope_;
    Buffer scratch_, unit_, row_, local_, covariance_;
    std::vector<double> zeros_;                           // [size]
    std::vector<std::pair<std::size_t, double>> scored_;  // of all parts, one after another: weight and factor
    std::vector<std::size_t> begins_;                     // [n parts + 1]: in scored_
    std::vector<std::size_t> active_, place_;             // weights that score any part, and where they are in it
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

bool Objective::hessian(std::span<const double* const> points, double* hessian) {
    // Two sums, whatever the number of threads.
    const std::size_t n = problem_.n_examples(), cells = checked_product(problem_.size(), problem_.size());
    const std::size_t middle = n / 2;
    std::vector<std::unique_ptr<Curvature>> all;
    for (std::size_t i = 0; i < n_threads_; ++i) all.push_back(std::make_unique<Curvature>(*this));
    Buffer other;
    other.require(std::max<std::size_t>(cells, 1));
    std::atomic<bool> is_finite = true;
    parallel_for(2, n_threads_, [&](std::size_t worker, std::size_t half) {
        double* out = half == 0 ? hessian : other.data();
        std::fill_n(out, cells, 0.0);
        for (std::size_t i = half == 0 ? 0 : middle; i < (half == 0 ? middle : n); ++i)
            if (!all[worker]->add(points, i, out)) is_finite = false;
    });
    for (std::size_t j = 0; j < cells; ++j) hessian[j] += other.data()[j];
    return is_finite;
}

}  // namespace dualfield
