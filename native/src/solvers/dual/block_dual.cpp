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
#include "dualfield/solvers/dual/block_dual.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "dual_weights.hpp"
#include "dualfield/core/memory.hpp"
#include "dualfield/core/random.hpp"
#include "dualfield/vector/routines.hpp"
#include "gap_forecast.hpp"
#include "soft_dual.hpp"

namespace dualfield {
namespace {

// Tolerances from here on leave room for a state in single precision: half of the memory to move.
constexpr double kSingleFrom = 2e-6;
// What rounding leaves of a difference of sums of this size.
constexpr double kRounding = 4.0 * std::numeric_limits<double>::epsilon();
// From this epoch on two of three visit only the examples that gained most, which have this share of all gains.
constexpr std::size_t kSelectFrom = 8, kFullEvery = 3;
constexpr double kSelectShare = 0.8;
// A gap that is reported and smaller than this share of the dual could be one of rounding: it is computed exactly.
constexpr double kDoubt = 1e-2;
// The proximal weight beside the mean of c_i |A_i|^2; from so many epochs to so many it is asked whether the centre is
// to follow, and steps are at least this long after that.
constexpr double kProximal = 8e-3, kFollowLength = 0.5;
constexpr std::uint64_t kFollowEvery = 2;
// It follows when the gap of the proximal problem is at most so many times its term: nearer would be for nothing.
constexpr double kFollowGap = 4.0;
// With a proximal term gaps go up and down; how fast they fall is seen from a distance.
constexpr double kLookSpacing = 1.25;
// Ascents that stand still before they are at the end begin anew so many times.
constexpr std::uint64_t kMostRetries = 8;
// Proximal weights outside of [1 / kHuge, kHuge] would not leave finite weights.
constexpr double kHuge = 1e100;

// None for squares alone, and where the ridge is as strong.
double proximal_weight(const Problem& problem, double l1_ratio) {
    if (l1_ratio == 0.0) return 0.0;
    const auto n = static_cast<double>(problem.n_examples());
    const double weights = std::accumulate(problem.weights, problem.weights + problem.n_examples(), 0.0);
    const double square = problem.scores->square() / n;
    double sigma = kProximal * (weights / n) * (square > 0.0 ? square : 1.0);
    if (!(sigma > 1.0 / kHuge && sigma < kHuge)) sigma = 1.0;
    return sigma > 1.0 - l1_ratio ? sigma : 0.0;
}

// Whether the state is kept in double precision. Rounded marginals leave noise in w, the more the weaker the ridge.
bool is_exact(const Problem& problem, double tolerance, double l1_ratio) {
    return tolerance < kSingleFrom || proximal_weight(problem, l1_ratio) > 0.0;
}

// S: float or double, the precision in which the state is kept.
template <class S>
class BlockDual {
  public:
    BlockDual(const Problem& problem, const BlockDualSettings& settings, const Callbacks& callbacks)
        : problem_(problem),
          map_(*problem.scores),
          settings_(settings),
          callbacks_(callbacks),
          objective_(problem, settings.n_threads),
          points_(problem, objective_.truth()),
          n_(problem.n_examples()),
          gain_(n_, 0.0),
          sigma_(proximal_weight(problem, settings.l1_ratio)),
          weights_(map_, settings.l1_ratio, sigma_) {
        std::size_t largest = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            largest = std::max(largest, points_.n_own(i));
            if (problem.length(i) > 0) order_.push_back(i);
        }
        scores_.require(largest + kLanes);
        scratch_.require(map_.scratch_size());
    }

    void begin(const double* start) {
        if (callbacks_.resume)
            restore(*callbacks_.resume);
        else if (!start || !start_from(start))
            points_.begin_at_truth();
    }

    // Begins where a state in another precision stands.
    template <class Other>
    void take_over(const BlockDual<Other>& before) {
        points_.take_over(before.points_);
        weights_.begin(before.weights_);
        gain_ = before.gain_;
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
            if (!visit_all(epoch_)) {
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
    friend class BlockDual;

    // Between two passes; an outcome ends the solve.
    std::optional<Outcome> pass_end() {
        if (n_iterations_ == 0 || n_iterations_ == resumed_ || !callbacks_.pass_end) return std::nullopt;
        const auto progress = [&] {
            const double primal = weights_.penalty() + objective_.loss(weights_.data());
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
        points_.describe(archive);
        archive("gain", gain_);
        weights_.describe(archive);
        archive.permutation("order", order_);
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
            const std::vector<double> zero(problem_.size(), 0.0);
            if (!(weights_.penalty() + objective_.loss(parameters) <= objective_.loss(zero.data()))) {
                weights_.begin(zero.data());
                return false;
            }
        }
        for (const std::size_t i : order_) {
            points_.begin_at(i, score(i));
        }
        rebuild();
        if (dual_ >= 0.0 || weights_.is_proximal()) return true;
        weights_.clear();
        dual_ = 0.0;
        return false;
    }

    // Scores of an example as w has them now, with the cost of wrong labels.
    PartsOfOne<const double> score(std::size_t i) {
        map_.score(weights_.data(), {i, i + 1}, tables_of_one(map_.parts(), i, scores_.data()), scratch_.data());
        if (problem_.cost) problem_.structure->add_cost(i, problem_.truth(i), problem_.cost, 1.0, scores_.data());
        return {scores_.data(), map_.shared(weights_.data())};
    }

    // v += scale * A_i' times what the point has moved, and w follows; returns how much R* grows.
    double move(std::size_t i, double scale) { return weights_.move(i, points_.moved_sums(i), scale, scratch_.data()); }

    // One example: returns what the dual gains.
    double visit(std::size_t i) {
        const double weight = problem_.weights[i];
        const auto grow = [&] {
            passes_ += 1.0 / static_cast<double>(order_.size());
            return move(i, -weight);
        };
        return points_.ascend(i, score(i), grow, [&] { move(i, weight); }).value_or(0.0);
    }

    // One epoch in random order; false if the callback ends the solve.
    bool visit_all(std::size_t epoch) {
        RandomStream random(settings_.seed, epoch);
        for (std::size_t left = order_.size(); left > 1; --left)
            std::swap(order_[left - 1], order_[random.next() % left]);
        const double least = epoch > kSelectFrom && epoch % kFullEvery != 0 ? selected_gain() : 0.0;
        chosen_.clear();
        for (const std::size_t i : order_)
            if (gain_[i] >= least) chosen_.push_back(i);
        for (std::size_t at = 0; at < chosen_.size(); ++at) {
            const std::size_t i = chosen_[at];
            if (at + 1 < chosen_.size()) {
                const std::size_t next = chosen_[at + 1];
                points_.prefetch(next);
                map_.prefetch(next);
            }
            gain_[i] = visit(i);
            dual_ += gain_[i];
            if (is_spent()) break;
            if (at % 256 == 255 && !tell()) return false;
        }
        return true;
    }

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

    // w and the dual value from theta, all in double precision, without what rounding has left in them.
    void rebuild() {
        weights_.clear();
        dual_ = 0.0;
        for (const std::size_t i : order_) {
            points_.settle(i);
            move(i, -problem_.weights[i]);
            dual_ += problem_.weights[i] * points_.value(i);
        }
        bound_ = weights_.is_proximal() ? weights_.bound(dual_) : 0.0;
        dual_ -= weights_.conjugate();
    }

    // The centre follows; false where it is there.
    bool follow() {
        if (!(weights_.proximity() > kRounding * std::abs(dual_))) return false;
        dual_ += weights_.conjugate();
        weights_.follow();
        points_.lengthen_steps(kFollowLength);
        dual_ -= weights_.conjugate();
        return true;
    }

    // Steps that have become too short for any gain begin anew; false where that was tried often enough.
    bool retry() {
        if (n_retries_ >= kMostRetries) return false;
        ++n_retries_;
        points_.lengthen_steps(kFollowLength);
        return true;
    }

    // What `rebuild` would find, which leaves no trace: dual_ is a sum of many gains at marginals that were rounded.
    double exact_bound() {
        DualWeights anew(map_, settings_.l1_ratio, sigma_);
        anew.begin(weights_);
        double gain = 0.0;
        for (const std::size_t i : order_) {
            gain += problem_.weights[i] * points_.exact_value(i);
            points_.subtract_truth(i);
            anew.move(i, points_.moved_sums(i), -problem_.weights[i], scratch_.data());
        }
        return anew.is_proximal() ? anew.bound(gain) : gain - anew.conjugate();
    }

    void certify() {
        primal_ = weights_.penalty() + objective_.loss(weights_.data());
        if (weights_.is_proximal()) bound_ = std::max(bound_, weights_.bound(dual_ + weights_.conjugate()));
        forecast_.look(gap_at(primal_), passes_, weights_.is_proximal() ? kLookSpacing : 1.0);
    }

    bool tell() { return callbacks_.report({primal_, bound(), gap_at(primal_), passes_, clock_.seconds()}); }

    const Problem& problem_;
    const ScoreMap& map_;
    const BlockDualSettings& settings_;
    const Callbacks& callbacks_;
    Objective objective_;
    SoftDual<S> points_;
    Clock clock_;
    std::size_t n_;
    std::vector<double> gain_, sorted_;  // [n]: of the last visit
    double sigma_;
    DualWeights weights_;
    std::vector<std::uint64_t> order_, chosen_;
    Buffer scores_, scratch_;
    GapForecast forecast_;
    double primal_ = kInfinity, dual_ = 0.0, bound_ = 0.0, passes_ = 0.0;
    std::uint64_t epoch_ = 1, next_check_ = 3, n_iterations_ = 0, n_retries_ = 0, resumed_ = 0;
};

}  // namespace

std::size_t block_dual_bytes(const Problem& problem, double tolerance, double l1_ratio) {
    const PartLayout& parts = problem.structure->parts();
    const std::size_t precision = is_exact(problem, tolerance, l1_ratio) ? sizeof(double) : sizeof(float);
    // w and what it follows from, and the same again where a bound is computed anew.
    const std::size_t n_vectors = l1_ratio == 0.0 ? 2 : proximal_weight(problem, l1_ratio) > 0.0 ? 8 : 4;
    return 2 * precision * (parts.own_begin(problem.n_examples()) + problem.n_examples() * parts.n_shared) +
           n_vectors * sizeof(double) * problem.size();
}

LinearSolution solve_block_dual(const Problem& problem, const double* start, const BlockDualSettings& settings,
                                const Callbacks& callbacks) {
    if (problem.allowed || !(problem.temperature > 0.0) || !(settings.l1_ratio >= 0.0 && settings.l1_ratio <= 1.0))
        throw std::invalid_argument("block_dual needs all labels, a temperature above zero and l1_ratio in [0, 1]");
    const SolverState* resume = callbacks.resume;
    const bool was_exact = resume && resume->contains("theta") && resume->at("theta").index() == 1;
    if (is_exact(problem, settings.tolerance, settings.l1_ratio) || was_exact) {
        BlockDual<double> run(problem, settings, callbacks);
        run.begin(start);
        return run.solve();
    }
    BlockDual<float> run(problem, settings, callbacks);
    run.begin(start);
    const LinearSolution rough = run.solve();
    if (rough.outcome != Outcome::stalled) return rough;
    // Large weights can need more digits than single precision has.
    BlockDual<double> exact(problem, settings, callbacks);
    exact.take_over(run);
    return exact.solve();
}

}  // namespace dualfield
