// Examples with their dual points and the weights that these have: scores, moves and visits, one example at a time.
#pragma once

#include <algorithm>
#include <cstddef>

#include "dual_weights.hpp"
#include "dualfield/core/buffer.hpp"
#include "dualfield/objectives/problem.hpp"
#include "soft_dual.hpp"

namespace dualfield {

template <class S>
class SoftExamples {
  public:
    // All must outlive this.
    SoftExamples(const Problem& problem, const Truth& truth, const SoftState<S>& state)
        : problem_(problem), map_(*problem.scores), points_(problem, truth, state) {
        std::size_t largest = 0;
        for (std::size_t i = 0; i < problem.n_examples(); ++i) largest = std::max(largest, points_.n_own(i));
        scores_.require(largest + kLanes);
        scratch_.require(map_.scratch_size());
    }

    SoftDual<S>& points() { return points_; }

    // A visit: returns what the dual gains. `passes` grows by `share` for every step that is tried.
    double visit(std::size_t i, DualWeights& weights, double share, double& passes) {
        const double weight = problem_.weights[i];
        const auto grow = [&] {
            passes += share;
            return move(i, -weight, weights);
        };
        return points_.ascend(i, score(i, weights), grow, [&] { move(i, weight, weights); }).value_or(0.0);
    }
    // The point that belongs to the weights.
    void begin_at(std::size_t i, const DualWeights& weights) { points_.begin_at(i, score(i, weights)); }
    // Marginals from theta, in double precision; moves weights that are summed up anew, and returns the value.
    double settle(std::size_t i, DualWeights& anew) {
        points_.settle(i);
        move(i, -problem_.weights[i], anew);
        return problem_.weights[i] * points_.value(i);
    }
    // The same, and leaves the point as it is.
    double exact_value(std::size_t i, DualWeights& anew) {
        const double value = problem_.weights[i] * points_.exact_value(i);
        points_.subtract_truth(i);
        move(i, -problem_.weights[i], anew);
        return value;
    }
    // Asks for what an example that comes soon needs.
    void prefetch(std::size_t i) const {
        points_.prefetch(i);
        map_.prefetch(i);
    }

  private:
    // Scores of an example as w has them now, with the cost of wrong labels.
    PartsOfOne<const double> score(std::size_t i, const DualWeights& weights) {
        map_.score(weights.data(), {i, i + 1}, tables_of_one(map_.parts(), i, scores_.data()), scratch_.data());
        if (problem_.cost) problem_.structure->add_cost(i, problem_.truth(i), problem_.cost, 1.0, scores_.data());
        return {scores_.data(), map_.shared(weights.data())};
    }
    // v += scale * A_i' times what the point has moved, and w follows; returns how much R* grows.
    double move(std::size_t i, double scale, DualWeights& weights) {
        return weights.move(map_, i, points_.moved_sums(i), scale, scratch_.data());
    }

    const Problem& problem_;
    const ScoreMap& map_;
    SoftDual<S> points_;
    Buffer scores_, scratch_;
};

}  // namespace dualfield
