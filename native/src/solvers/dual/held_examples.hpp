// All examples of a problem in memory, for the ascent of dual_ascent.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "dualfield/core/random.hpp"
#include "dualfield/objectives/objective.hpp"
#include "selection.hpp"
#include "soft_examples.hpp"

namespace dualfield {

// S: float or double, the precision in which the state is kept.
template <class S>
class HeldExamples {
  public:
    HeldExamples(const Problem& problem, std::uint64_t seed, std::size_t n_threads)
        : problem_(problem),
          seed_(seed),
          objective_(problem, n_threads),
          memory_(problem),
          examples_(problem, objective_.truth(), memory_.state()),
          gain_(problem.n_examples(), 0.0) {
        for (std::size_t i = 0; i < problem.n_examples(); ++i)
            if (problem.length(i) > 0) order_.push_back(i);
    }

    std::size_t size() const { return problem_.size(); }
    double loss(const double* w) { return objective_.loss(w); }

    void begin_at_truth() { examples_.points().begin_at_truth(); }
    void begin_at(const DualWeights& weights) {
        for (const std::size_t i : order_) examples_.begin_at(i, weights);
    }
    // Begins where a state in another precision stands.
    template <class Other>
    void take_over(HeldExamples<Other>& before) {
        examples_.points().take_over(before.examples_.points());
        gain_ = before.gain_;
    }

    // One epoch in random order. `heard(gain)` is called after each visit, and false ends the sweep.
    template <class Heard>
    void sweep(std::uint64_t epoch, DualWeights& weights, double& passes, const Heard& heard) {
        RandomStream random(seed_, epoch);
        shuffle(order_, random);
        const double least = is_selective(epoch) ? selected_gain() : 0.0;
        chosen_.clear();
        for (const std::size_t i : order_)
            if (gain_[i] >= least) chosen_.push_back(i);
        const double share = 1.0 / static_cast<double>(order_.size());
        for (std::size_t at = 0; at < chosen_.size(); ++at) {
            const std::size_t i = chosen_[at];
            if (at + 1 < chosen_.size()) examples_.prefetch(chosen_[at + 1]);
            gain_[i] = examples_.visit(i, weights, share, passes);
            if (!heard(gain_[i])) break;
        }
    }

    // The values of all points, summed up with weights that begin at v = 0: in double precision, without what rounding
    // has left in them.
    double rebuild(DualWeights& anew) {
        double sum = 0.0;
        for (const std::size_t i : order_) sum += examples_.settle(i, anew);
        return sum;
    }
    // The same, and leaves no trace.
    double exact_values(DualWeights& anew) {
        double sum = 0.0;
        for (const std::size_t i : order_) sum += examples_.exact_value(i, anew);
        return sum;
    }
    void lengthen_steps(double least) { examples_.points().lengthen_steps(least); }

    template <class Archive>
    void describe(Archive& archive) {
        examples_.points().describe(archive);
        archive("gain", gain_);
        archive.permutation("order", order_);
    }

  private:
    template <class Other>
    friend class HeldExamples;

    // The examples that gained at least this much at their last visit have kSelectShare of all gains.
    double selected_gain() {
        sorted_.assign(gain_.begin(), gain_.end());
        std::sort(sorted_.begin(), sorted_.end(), std::greater<>());
        const double enough = kSelectShare * std::accumulate(sorted_.begin(), sorted_.end(), 0.0);
        double sum = 0.0;
        for (const double gain : sorted_)
            if ((sum += gain) >= enough) return gain;
        return 0.0;
    }

    const Problem& problem_;
    std::uint64_t seed_;
    Objective objective_;
    SoftMemory<S> memory_;
    SoftExamples<S> examples_;
    std::vector<double> gain_, sorted_;  // [n]: of the last visit
    std::vector<std::uint64_t> order_, chosen_;
};

}  // namespace dualfield
