// Block-coordinate ascent on the dual of any structure with exponentiated gradients.
//
//   dual(mu) = sum_i c_i [ T H(mu_i) + <D_i, mu_i> ] - R*(v(mu)),     v(mu) = sum_i c_i A_i' (u_i - mu_i)
//
// R is half the squared norm, for which w = v, or an elastic net, for which w has exact zeros: dual_weights.hpp. A
// visit makes a step for one example, as soft_dual.hpp says, and moves v and w (Collins et al. 2008; Taskar's block
// structure; Shalev-Shwartz and Zhang 2014 for the net). How much R* grows is summed up while they are moved, so that
// the test whether the dual has grown is exact.
//
// primal(w(mu)) - dual(mu) = sum_i c_i T KL(mu_i || p_i(w)) >= 0 certifies. It is computed now and then, when the
// speed so far says that it will be small enough, and from weights that were summed up anew before it is claimed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "dual_weights.hpp"
#include "dualfield/solvers/dual/block_dual.hpp"
#include "gap_forecast.hpp"

namespace dualfield {

// Where the examples are: in memory, HeldExamples, or in blocks that are read one after another, StreamedExamples. Both
// sweep over them, sum up their losses, and know the dual points.
template <class Data>
class DualAscent {
  public:
    DualAscent(Data& data, double sigma, const BlockDualSettings& settings, const Callbacks& callbacks)
        : data_(data),
          settings_(settings),
          callbacks_(callbacks),
          sigma_(sigma),
          weights_(data.size(), settings.l1_ratio, sigma) {}

    void begin(const double* start) {
        if (callbacks_.resume)
            restore(*callbacks_.resume);
        else if (!start || !start_from(start))
            data_.begin_at_truth();
    }

    // Begins where a state in another precision stands.
    template <class Other>
    void take_over(DualAscent<Other>& before) {
        data_.take_over(before.data_);
        weights_.begin(before.weights_);
        passes_ = before.passes_;
        clock_ = before.clock_;
        n_iterations_ = before.n_iterations_;
        rebuild();
    }

    LinearSolution solve() {
        LinearSolution solution;
        for (;; ++epoch_) {
            if (const auto end = pass_end()) {
                solution.outcome = *end;
                break;
            }
            const double before = dual_;
            if (!visit_all()) {
                solution.outcome = Outcome::interrupted;
                break;
            }
            ++n_iterations_;
            const bool spent = is_spent();
            const bool idle = dual_ - before <= 1e-15 * std::abs(dual_);
            if (epoch_ < next_check_ && !spent && !idle) continue;
            certify();
            const bool stuck = idle && !(weights_.is_proximal() && (follow() || retry()));
            if (is_small() || spent || stuck) {
                rebuild();
                certify();
                if (!is_small() && !spent && !stuck) continue;
                solution.outcome = is_small() ? Outcome::converged
                                   : spent    ? Outcome::iteration_limit
                                              : Outcome::stalled;
                break;
            }
            if (forecast_.is_slow(small(), settings_.patience)) {
                rebuild();
                certify();
                solution.outcome = Outcome::too_slow;
                break;
            }
            next_check_ = epoch_ + (weights_.is_proximal() ? kFollowEvery : forecast_.passes_to_wait(small()));
            if (!tell()) {
                solution.outcome = Outcome::interrupted;
                break;
            }
            if (weights_.is_proximal() && !idle && primal_ - dual_ <= (kFollowGap - 1.0) * weights_.proximity())
                follow();
        }
        if (solution.outcome == Outcome::interrupted || solution.outcome == Outcome::stopped) {
            rebuild();
            certify();
        }
        tell();
        solution.parameters = weights_.copy();
        solution.objective = primal_;
        solution.gap = gap_at(primal_);
        solution.n_iterations = n_iterations_;
        return solution;
    }

  private:
    template <class Other>
    friend class DualAscent;

    // What rounding leaves of a difference of sums of this size.
    static constexpr double kRounding = 4.0 * std::numeric_limits<double>::epsilon();
    // A gap that is reported and smaller than this share of the dual could be one of rounding: it is computed exactly.
    static constexpr double kDoubt = 1e-2;
    // From so many epochs to so many it is asked whether the centre of a proximal term is to follow, and steps are at
    // least this long after that.
    static constexpr double kFollowLength = 0.5;
    static constexpr std::uint64_t kFollowEvery = 2;
    // It follows when the gap of the proximal problem is at most so many times its term: nearer would be for nothing.
    static constexpr double kFollowGap = 4.0;
    // With a proximal term gaps go up and down; how fast they fall is seen from a distance.
    static constexpr double kLookSpacing = 1.25;
    // Ascents that stand still before they are at the end begin anew so many times.
    static constexpr std::uint64_t kMostRetries = 8;

    // Between two passes; an outcome ends the solve.
    std::optional<Outcome> pass_end() {
        if (n_iterations_ == 0 || n_iterations_ == resumed_ || !callbacks_.pass_end) return std::nullopt;
        const auto progress = [&] {
            const double primal = weights_.penalty() + data_.loss(weights_.data());
            const double dual = primal - bound() > kDoubt * std::abs(bound()) ? bound() : exact_bound();
            return Progress{primal, dual, gap_between(primal, dual), passes_, clock_.seconds()};
        };
        const auto state = [&] {
            StateWriter writer;
            describe(writer);
            writer("seconds", clock_.seconds());
            return writer.release();
        };
        return callbacks_.pass_end({progress, [&] { return weights_.copy(); }, state});
    }

    void restore(const SolverState& saved) {
        const StateReader reader(saved);
        describe(reader);
        double seconds = 0.0;
        reader("seconds", seconds);
        clock_ = Clock(seconds);
        resumed_ = n_iterations_;
        if (next_check_ > epoch_ + GapForecast::kLongestWait) throw StateError("next_check is out of range");
    }

    template <class Archive>
    void describe(Archive& archive) {
        data_.describe(archive);
        weights_.describe(archive);
        archive("primal", primal_);
        archive("dual", dual_);
        archive("bound", bound_);
        archive("n_retries", n_retries_);
        archive.at_least("passes", passes_, 0.0);
        archive("epoch", epoch_);
        archive("next_check", next_check_);
        archive("n_iterations", n_iterations_);
        forecast_.describe(archive);
    }

    // The difference of the two values, but never less than what rounding can hide in them.
    static double gap_between(double primal, double dual) {
        return std::max(primal - dual, kRounding * (std::abs(primal) + std::abs(dual)));
    }
    // The dual of R. With a proximal term dual_ is that of another problem.
    double bound() const { return weights_.is_proximal() ? bound_ : dual_; }
    double gap_at(double primal) const { return gap_between(primal, bound()); }
    double small() const { return settings_.tolerance * bound(); }
    bool is_small() const { return gap_at(primal_) <= small(); }
    // Passes are sums of shares of one, which may end a little below a whole number.
    bool is_spent() const { return passes_ * (1.0 + 1e-9) >= settings_.most_passes; }

    // Begins at the point of the dual that belongs to these weights. False where a start without weights is better: if
    // its dual is below that of the truth, zero; or its objective above that of zero weights, where a centre counts.
    bool start_from(const double* parameters) {
        weights_.begin(parameters);
        if (weights_.is_proximal()) {
            const std::vector<double> zero(data_.size(), 0.0);
            if (!(weights_.penalty() + data_.loss(parameters) <= data_.loss(zero.data()))) {
                weights_.begin(zero.data());
                return false;
            }
        }
        data_.begin_at(weights_);
        rebuild();
        if (dual_ >= 0.0 || weights_.is_proximal()) return true;
        weights_.clear();
        dual_ = 0.0;
        return false;
    }

    // One epoch; false if the callback ends the solve.
    bool visit_all() {
        bool goes_on = true;
        std::size_t n_heard = 0;
        data_.sweep(epoch_, weights_, passes_, [&](double gain) {
            dual_ += gain;
            if (is_spent()) return false;
            if (n_heard++ % 256 == 255) goes_on = tell();
            return goes_on;
        });
        return goes_on;
    }

    // w and the dual value from theta, all in double precision, without what rounding has left in them.
    void rebuild() {
        weights_.clear();
        dual_ = data_.rebuild(weights_);
        bound_ = weights_.is_proximal() ? weights_.bound(dual_) : 0.0;
        dual_ -= weights_.conjugate();
    }

    // The centre follows; false where it is there.
    bool follow() {
        if (!(weights_.proximity() > kRounding * std::abs(dual_))) return false;
        dual_ += weights_.conjugate();
        weights_.follow();
        data_.lengthen_steps(kFollowLength);
        dual_ -= weights_.conjugate();
        return true;
    }

    // Steps that have become too short for any gain begin anew; false where that was tried often enough.
    bool retry() {
        if (n_retries_ >= kMostRetries) return false;
        ++n_retries_;
        data_.lengthen_steps(kFollowLength);
        return true;
    }

    // What `rebuild` would find, which leaves no trace: dual_ is a sum of many gains at marginals that were rounded.
    double exact_bound() {
        DualWeights anew(data_.size(), settings_.l1_ratio, sigma_);
        anew.begin(weights_);
        const double gain = data_.exact_values(anew);
        return anew.is_proximal() ? anew.bound(gain) : gain - anew.conjugate();
    }

    void certify() {
        primal_ = weights_.penalty() + data_.loss(weights_.data());
        if (weights_.is_proximal()) bound_ = std::max(bound_, weights_.bound(dual_ + weights_.conjugate()));
        forecast_.look(gap_at(primal_), passes_, weights_.is_proximal() ? kLookSpacing : 1.0);
    }

    bool tell() { return callbacks_.report({primal_, bound(), gap_at(primal_), passes_, clock_.seconds()}); }

    Data& data_;
    const BlockDualSettings& settings_;
    const Callbacks& callbacks_;
    Clock clock_;
    double sigma_;
    DualWeights weights_;
    GapForecast forecast_;
    double primal_ = kInfinity, dual_ = 0.0, bound_ = 0.0, passes_ = 0.0;
    std::uint64_t epoch_ = 1, next_check_ = 3, n_iterations_ = 0, n_retries_ = 0, resumed_ = 0;
};

}  // namespace dualfield
