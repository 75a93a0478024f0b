// Dual points at temperatures above zero, for any structure.
//
// mu_i is kept as the marginals of scores theta_i: own parts have one each, shared parts have one for the whole
// example. A step mixes theta_i with the scores that the weights give now,
//
//   theta_i <- (1 - eta) theta_i + eta (A_i w + D_i) / T,
//
// and computes marginals and entropy, H = log Z - <theta, mu>, by one call of the structure. Where that is a relaxation
// its slack is subtracted: H is the entropy of the point that it returns, never more. The step is kept if the dual has
// grown; otherwise eta is halved (Collins et al. 2008). Steps that succeed at once may be larger at the next visit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/memory.hpp"
#include "dualfield/objectives/problem.hpp"
#include "dualfield/vector/routines.hpp"
#include "parts_of_one.hpp"

namespace dualfield {

// The numbers that the dual points of some examples are kept as; S: float or double.
template <class S>
struct SoftState {
    std::span<S> theta, mu, shared_theta, shared_mu;  // own parts of all examples, [n][n_shared]
    std::span<double> value, eta;                     // [n]: T H + <D, mu>, step size
};

// The same in memory of their own.
template <class S>
class SoftMemory {
  public:
    explicit SoftMemory(const Problem& problem)
        : theta_(problem.structure->parts().own_begin(problem.n_examples())),
          mu_(theta_.size()),
          shared_theta_(checked_product(problem.n_examples(), problem.structure->parts().n_shared)),
          shared_mu_(shared_theta_.size()),
          value_(problem.n_examples(), 0.0),
          eta_(problem.n_examples(), 1.0) {}

    SoftState<S> state() {
        return {{theta_.data(), theta_.size()},
                {mu_.data(), mu_.size()},
                {shared_theta_.data(), shared_theta_.size()},
                {shared_mu_.data(), shared_mu_.size()},
                value_,
                eta_};
    }

  private:
    Aligned<S> theta_, mu_, shared_theta_, shared_mu_;
    std::vector<double> value_, eta_;
};

template <class S>
class SoftDual {
  public:
    using Scores = PartsOfOne<const double>;

    // All must outlive this.
    SoftDual(const Problem& problem, const Truth& truth, const SoftState<S>& kept)
        : problem_(problem),
          truth_(truth),
          layout_(problem.structure->parts()),
          block_(problem.structure->block()),
          n_shared_(layout_.n_shared),
          state_(routines().state<S>()),
          theta_(kept.theta),
          mu_(kept.mu),
          shared_theta_(kept.shared_theta),
          shared_mu_(kept.shared_mu),
          value_(kept.value),
          eta_(kept.eta) {
        std::size_t largest = 0;
        for (std::size_t i = 0; i < problem.n_examples(); ++i) {
            begins_.push_back(layout_.own_begin(i));
            largest = std::max(largest, layout_.n_own(i));
        }
        begins_.push_back(theta_.size());
        for (Buffer* buffer : {&new_theta_, &new_mu_, &moved_}) buffer->require(largest + kLanes);
        for (Buffer* buffer : {&new_shared_theta_, &new_shared_mu_, &shared_moved_})
            buffer->require(std::max<std::size_t>(n_shared_, 1));
    }

    // mu is the truth itself, where w and the dual are zero. No finite theta gives it, so theta only stands near by,
    // for the case that the first step, which would not look at it, is too long.
    void begin_at_truth() {
        for (const std::span<S> numbers : {theta_, mu_, shared_theta_, shared_mu_})
            std::fill(numbers.begin(), numbers.end(), S{0});
        std::fill(value_.begin(), value_.end(), 0.0);
        for (std::size_t i = 0; i < problem_.n_examples(); ++i) {
            truth_.add(i, S{1}, tables_of_one(layout_, i, mu_of(i)), shared_mu_of(i));
            const std::size_t width = layout_.tables[0].width;
            const auto nodes = truth_.parts(i).own[0];
            // Also of candidates that are not in the output: there are many, each with many labels, and after any step
            // some of them would be taken.
            for (std::size_t r = 0; r < nodes.size(); ++r)
                if (nodes[r] >= 0) theta_of(i)[r * width + static_cast<std::size_t>(nodes[r])] = static_cast<S>(kSure);
        }
    }

    // The point that belongs to given scores, whatever was there before.
    void begin_at(std::size_t i, Scores scores) {
        // The old state has no share; it must be numbers all the same.
        std::fill_n(theta_of(i), n_own(i), S{0});
        std::fill_n(mu_of(i), n_own(i), S{0});
        std::fill_n(shared_theta_of(i), n_shared_, S{0});
        std::fill_n(shared_mu_of(i), n_shared_, S{0});
        accept(i, propose(i, scores, 1.0));
    }

    // Begins where a state in another precision stands.
    template <class Other>
    void take_over(const SoftDual<Other>& before) {
        std::copy(before.theta_.begin(), before.theta_.end(), theta_.begin());
        std::copy(before.shared_theta_.begin(), before.shared_theta_.end(), shared_theta_.begin());
        std::copy(before.eta_.begin(), before.eta_.end(), eta_.begin());
    }

    // A step of an example that does not lower the dual; returns what the dual gains, nothing if all steps are too
    // long. growth() is how much the penalty grows by the step in moved(); undo() takes back what it has changed. The
    // scores have the cost of wrong labels in them.
    template <class Growth, class Undo>
    std::optional<double> ascend(std::size_t i, Scores scores, const Growth& growth, const Undo& undo) {
        double& eta = eta_[i];
        const bool is_truth = value_[i] < kNoValue;
        for (int softened = 0;; ++softened) {
            double first = 0.0;
            for (int tries = 0; tries < kMostTries; ++tries, eta *= kShrink) {
                const double value = propose(i, scores, eta);
                if (tries == 0) first = value;
                const double grown = growth();
                const double gain = problem_.weights[i] * (value - value_[i]) - grown;
                const bool stays = is_truth && first > kNoValue && value < kNoValue;
                if (gain >= 0.0 && !stays) {
                    accept(i, value);
                    if (tries == 0) eta = std::min(1.0, eta * kGrow);
                    return gain;
                }
                undo();
                if (stays) break;
            }
            // Where no other labelling is near, as with many grammars, a theta at the truth is far too sure of it: a
            // whole step is too long, and half a step leads nowhere.
            if (!is_truth || !(first > kNoValue)) return std::nullopt;
            if (softened == kMostSoftened) {
                scale_theta(i, std::ldexp(1.0, softened));
                return std::nullopt;
            }
            scale_theta(i, 0.5);
            eta = 1.0;
        }
    }

    // Where the problem has changed, steps that were too long may not be any more.
    void lengthen_steps(double least) {
        for (double& eta : eta_) eta = std::max(eta, least);
    }

    // Marginals and value from theta, in double precision; leaves mu - u in moved().
    void settle(std::size_t i) {
        value_[i] = exact_value(i);
        state_.keep(moved_.data(), n_own(i), mu_of(i));
        state_.keep(shared_moved_.data(), n_shared_, shared_mu_of(i));
        subtract_truth(i);
    }
    // The value alone, or a little less: it is a difference of sums, and rounding must not make it a bound that is
    // none. Leaves mu in moved(), and the state as it is.
    double exact_value(std::size_t i) {
        double *d = moved_.data(), *shared_d = shared_moved_.data();
        std::copy_n(theta_of(i), n_own(i), new_theta_.data());
        std::copy_n(shared_theta_of(i), n_shared_, new_shared_theta_.data());
        const double log_partition = ask(i, {d, shared_d}).from_below();
        double inner = 0.0, magnitude = std::abs(log_partition);
        const auto add = [&](double theta, double mu) {
            inner += theta * mu;
            magnitude += std::abs(theta) * mu;
        };
        for (std::size_t j = 0; j < n_own(i); ++j) add(new_theta_.data()[j], d[j]);
        for (std::size_t c = 0; c < n_shared_; ++c) add(new_shared_theta_.data()[c], shared_d[c]);
        const double entropy = log_partition - inner - kRounding * magnitude;
        return problem_.temperature * entropy + expected_cost(i, d);
    }
    // From mu to mu - u, in moved().
    void subtract_truth(std::size_t i) {
        truth_.add(i, -1.0, tables_of_one(layout_, i, moved_.data()), shared_moved_.data());
    }

    // T log Z of given scores.
    double soft_maximum(std::size_t i, Scores scores) {
        const double factor = 1.0 / problem_.temperature;
        for (std::size_t j = 0; j < n_own(i); ++j) new_theta_.data()[j] = factor * scores.own[j];
        for (std::size_t c = 0; c < n_shared_; ++c) new_shared_theta_.data()[c] = factor * scores.shared[c];
        return problem_.temperature * ask(i, {new_mu_.data(), new_shared_mu_.data()}).value;
    }

    PartsOfOne<double> moved() { return {moved_.data(), shared_moved_.data()}; }
    PartSums moved_sums(std::size_t i) { return {tables_of_one(layout_, i, moved_.data()), shared_moved_.data()}; }
    PartsOfOne<const S> mu(std::size_t i) const { return {mu_.data() + begins_[i], shared_mu_.data() + i * n_shared_}; }
    double value(std::size_t i) const { return value_[i]; }
    std::size_t n_own(std::size_t i) const { return begins_[i + 1] - begins_[i]; }

    // Asks for the state of an example that comes soon: it lies anywhere.
    void prefetch(std::size_t i) const {
        const auto all = [](const S* numbers, std::size_t n) {
            const auto* bytes = reinterpret_cast<const char*>(numbers);
            for (std::size_t at = 0; at < n * sizeof(S); at += 64) prefetch_line(bytes + at);
        };
        all(theta_.data() + begins_[i], n_own(i));
        all(mu(i).own, n_own(i));
        all(shared_theta_.data() + i * n_shared_, n_shared_);
        all(mu(i).shared, n_shared_);
    }

    template <class Archive>
    void describe(Archive& archive) {
        archive("theta", theta_);
        archive("mu", mu_);
        archive("shared_theta", shared_theta_);
        archive("shared_mu", shared_mu_);
        archive("value", value_);
        archive("eta", eta_);
    }

  private:
    template <class Other>
    friend class SoftDual;

    static constexpr double kGrow = 1.1, kShrink = 0.5;  // of eta
    static constexpr int kMostTries = 12, kMostSoftened = 10;
    static constexpr double kNoValue = 1e-9;  // of a point that is the truth but for rounding
    static constexpr double kRounding = 4.0 * std::numeric_limits<double>::epsilon();
    static constexpr double kSure = 14.0;  // score of the true labels at the start: nearly all mass, and room to move

    S* theta_of(std::size_t i) { return theta_.data() + begins_[i]; }
    S* mu_of(std::size_t i) { return mu_.data() + begins_[i]; }
    S* shared_theta_of(std::size_t i) { return shared_theta_.data() + i * n_shared_; }
    S* shared_mu_of(std::size_t i) { return shared_mu_.data() + i * n_shared_; }

    void scale_theta(std::size_t i, double factor) {
        const auto scale = [factor](S* numbers, std::size_t n) {
            for (std::size_t j = 0; j < n; ++j) numbers[j] = static_cast<S>(factor * numbers[j]);
        };
        scale(theta_of(i), n_own(i));
        scale(shared_theta_of(i), n_shared_);
    }

    // The point that a step of length eta leads to; how far it is, is in moved(). Returns its value, T H + <D, mu>.
    double propose(std::size_t i, Scores scores, double eta) {
        const double factor = 1.0 / problem_.temperature;
        state_.mix(theta_of(i), scores.own, eta, factor, n_own(i), new_theta_.data());
        state_.mix(shared_theta_of(i), scores.shared, eta, factor, n_shared_, new_shared_theta_.data());
        const double log_partition = ask(i, {new_mu_.data(), new_shared_mu_.data()}).from_below();
        const double inner = state_.difference(new_mu_.data(), mu_of(i), new_theta_.data(), n_own(i), moved_.data()) +
                             state_.difference(new_shared_mu_.data(), shared_mu_of(i), new_shared_theta_.data(),
                                               n_shared_, shared_moved_.data());
        return problem_.temperature * (log_partition - inner) + expected_cost(i, new_mu_.data());
    }
    void accept(std::size_t i, double value) {
        state_.keep(new_theta_.data(), n_own(i), theta_of(i));
        state_.keep(new_mu_.data(), n_own(i), mu_of(i));
        state_.keep(new_shared_theta_.data(), n_shared_, shared_theta_of(i));
        state_.keep(new_shared_mu_.data(), n_shared_, shared_mu_of(i));
        value_[i] = value;
    }

    double expected_cost(std::size_t i, const double* mu) const {
        return problem_.cost ? problem_.structure->expected_cost(i, problem_.truth(i), problem_.cost, mu) : 0.0;
    }

    // Marginals of new_theta_, and the log-partition.
    Block::Answer ask(std::size_t i, PartsOfOne<double> out) {
        const ScoreView scores = view_of_one(layout_, i, {new_theta_.data(), new_shared_theta_.data()});
        const auto answer = block_->marginals(i, scores, {tables_of_one(layout_, i, out.own), out.shared});
        if (answer.status == Status::bad_number)
            throw std::runtime_error("The scores of an example are not finite any more: the features are too large.");
        return answer;
    }

    const Problem& problem_;
    const Truth& truth_;
    const PartLayout& layout_;
    std::unique_ptr<Block> block_;
    std::size_t n_shared_;
    const StateRoutines<S>& state_;
    std::vector<std::size_t> begins_;  // [n + 1]: of the own parts
    std::span<S> theta_, mu_, shared_theta_, shared_mu_;
    std::span<double> value_, eta_;
    Buffer new_theta_, new_mu_, moved_, new_shared_theta_, new_shared_mu_, shared_moved_;
};

}  // namespace dualfield
