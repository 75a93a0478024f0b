// Second derivatives of the losses.
//
//   H = sum_i c_i A_i' Cov_i A_i / T,
//
// with Cov_i the covariance of the parts of example i, which its structure gives a direction at a time. Where examples
// are labelled in part, the covariance among the labellings that are allowed is subtracted.
#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
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

    // hessian [size][size] += H_i.
    bool add(const double* w, std::size_t example, double* hessian) {
        const Examples one{example, example + 1};
        worker_.chunk.compute(w, 1.0, one, true);
        if (!add_covariance(one, 1.0, hessian)) return false;
        if (!problem_.allowed) return true;
        worker_.chunk.forbid(one);
        return add_covariance(one, -1.0, hessian);
    }

  private:
    bool begin(std::size_t example) {
        const Status status = slope_->begin(example, worker_.chunk.of(example));
        if (status == Status::impossible)
            throw std::invalid_argument("Example " + std::to_string(example) +
                                        " has no labelling that its labels and the constraints allow.");
        return status == Status::ok;
    }

    // One part after another: the covariances of a part with all others, as a vector over the weights, is added to the
    // rows of the weights that score the part.
    bool add_covariance(Examples one, double sign, double* hessian) {
        const std::size_t example = one.first, size = problem_.size();
        if (!begin(example)) return false;
        const PartSums change = objective_.require_sums(worker_, one);
        const std::size_t n_own = layout_.n_own(example), n = n_own + layout_.n_shared;
        double* unit = unit_.require(std::max<std::size_t>(n, 1));
        std::fill_n(unit, n, 0.0);
        ScoreView direction;
        PartSums indicator;
        double* at = unit;
        for (std::size_t g = 0; g < layout_.tables.size(); ++g) {
            direction.own[g] = indicator.own[g] = at;
            at += layout_.tables[g].n_rows(example) * layout_.tables[g].width;
        }
        direction.shared = indicator.shared = at;
        direction.inverse_temperature = 1.0 / problem_.temperature;
        double *row = row_.require(size), *places = places_.require(size);
        for (std::size_t part = 0; part < n; ++part) {
            unit[part] = 1.0;
            std::fill_n(places, size, 0.0);
            problem_.scores->add(example, indicator, 1.0, places, scratch_.data());
            if (std::any_of(places, places + size, [](double x) { return x != 0.0; })) {
                slope_->derive(direction, change);
                std::fill_n(row, size, 0.0);
                problem_.scores->add(example, change, sign * problem_.weights[example], row, scratch_.data());
                for (std::size_t j = 0; j < size; ++j)
                    if (places[j] != 0.0)
                        for (std::size_t k = 0; k < size; ++k) hessian[j * size + k] += places[j] * row[k];
            }
            unit[part] = 0.0;
        }
        return true;
    }

    const Objective& objective_;
    const Problem& problem_;
    const PartLayout& layout_;
    Worker worker_;
    ChunkScores direction_;
    std::unique_ptr<Slope> slope_;
    Buffer scratch_, unit_, row_, places_;
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

bool Objective::hessian(const double* w, double* hessian) {
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
            if (!all[worker]->add(w, i, out)) is_finite = false;
    });
    for (std::size_t j = 0; j < cells; ++j) hessian[j] += other.data()[j];
    return is_finite;
}

}  // namespace dualfield
