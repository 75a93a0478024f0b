// Block-coordinate ascent on the dual of a linear chain with exponentiated gradients.
//
//   dual(mu) = sum_i c_i [ T H(mu_i) + <D_i, mu_i> ] - 1/2 |w(mu)|^2,     w(mu) = sum_i c_i A_i' (u_i - mu_i)
//
// mu_i is kept as the marginals of a chain with scores theta_i: one row for each node and one table of cliques for the
// whole example, since all edges share their scores. A visit mixes theta_i with the scores that w gives now,
//
//   theta_i <- (1 - eta) theta_i + eta (A_i w + D_i) / T,
//
// computes marginals and entropy, H = log Z - <theta, mu>, by one forward-backward pass, moves w, and keeps the step if
// the dual has grown; otherwise it goes back and halves eta (Collins et al. 2008; Taskar's block structure). How much
// |w|^2 / 2 grows is summed up while w is moved, so that the test is exact. Steps that succeed at once may be larger at
// the next visit.
//
// primal(w(mu)) - dual(mu) = sum_i c_i T KL(mu_i || p_i(w)) >= 0 certifies. It is computed now and then, when the
// speed so far says that it will be small enough, and from weights that were summed up anew before it is claimed.
#include "dualfield/block_dual.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "dualfield/chain_block.hpp"
#include "dualfield/memory.hpp"
#include "dualfield/random.hpp"
#include "dualfield/routines.hpp"
#include "gap_forecast.hpp"

namespace dualfield {
namespace {

constexpr double kSure = 14.0;  // score of the true labels at the start: nearly all of the mass, and room to move
// Tolerances from here on leave room for a state in single precision: half of the memory to move.
constexpr double kSingleFrom = 2e-6;
constexpr double kGrow = 1.1, kShrink = 0.5;
constexpr int kMostTries = 12;
// From this epoch on two of three visit only the examples that gained most, which have this share of all gains.
constexpr std::size_t kSelectFrom = 8, kFullEvery = 3;
constexpr double kSelectShare = 0.8;

// S: float or double, the precision in which the state is kept.
template <class S>
class BlockDual {
  public:
    BlockDual(const ChainModel& model, const ChainData& data, const BlockDualSettings& settings,
              const Companion& companion)
        : model_(model),
          data_(data),
          settings_(settings),
          companion_(companion),
          objective_(model, data, settings.n_threads),
          block_(*model.topology, model.start_limits, model.stop_limits),
          n_(data.n_examples()),
          n_labels_(model.topology->n_labels()),
          n_cliques_(model.topology->n_cliques()),
          state_(routines().state<S>()),
          theta_(data.n_nodes() * n_labels_),
          mu_(data.n_nodes() * n_labels_),
          clique_theta_(n_ * n_cliques_),
          clique_mu_(n_ * n_cliques_),
          value_(n_, 0.0),
          eta_(n_, 1.0),
          gain_(n_, 0.0),
          w_(model.size(), 0.0) {
        std::size_t longest = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            longest = std::max(longest, data.length(i));
            if (data.length(i) > 0) order_.push_back(i);
            mass_ += data.weights[i] * static_cast<double>(data.length(i));
        }
        const std::size_t rows = longest * n_labels_;
        for (Buffer* buffer : {&scores_, &new_theta_, &new_mu_, &moved_}) buffer->require(rows + kLanes);
        for (Buffer* buffer : {&new_clique_theta_, &new_clique_mu_, &clique_moved_}) buffer->require(n_cliques_);
        scratch_.require(2 * padded(std::max(n_labels_, n_cliques_)));
    }

    void begin(const double* start) {
        if (companion_.resume)
            restore(*companion_.resume);
        else if (start)
            start_from(start);
        else
            start_from_truth();
    }

    // Begins where a state in another precision stands.
    template <class Other>
    void take_over(const BlockDual<Other>& before) {
        std::copy(before.theta_.begin(), before.theta_.end(), theta_.begin());
        std::copy(before.clique_theta_.begin(), before.clique_theta_.end(), clique_theta_.begin());
        eta_ = before.eta_;
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
            const bool spent = passes_ >= settings_.most_passes;
            const bool stuck = dual_ - before <= 1e-15 * std::abs(dual_);
            if (epoch_ < next_check_ && !spent && !stuck) continue;
            certify();
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
            next_check_ = epoch_ + forecast_.passes_to_wait(small());
            if (!tell()) {
                solution.outcome = Outcome::interrupted;
                break;
            }
        }
        if (solution.outcome == Outcome::interrupted || solution.outcome == Outcome::stopped) {
            rebuild();
            certify();
        }
        tell();
        solution.parameters.assign(w_.begin(), w_.end());
        solution.objective = primal_;
        solution.gap = std::max(primal_ - dual_, 0.0);
        solution.n_iterations = n_iterations_;
        return solution;
    }

  private:
    template <class Other>
    friend class BlockDual;

    // Between two passes; an outcome ends the solve.
    std::optional<Outcome> pass_end() {
        if (n_iterations_ == 0 || n_iterations_ == resumed_ || !companion_.pass_end) return std::nullopt;
        const auto progress = [&] {
            const double primal = half_square() + objective_.loss(w_.data());
            return Progress{primal, dual_, primal - dual_, passes_, clock_.seconds()};
        };
        const auto state = [&] {
            StateWriter writer;
            describe(writer);
            writer("seconds", clock_.seconds());
            return writer.release();
        };
        return companion_.pass_end({progress, [&] { return std::vector<double>(w_.begin(), w_.end()); }, state});
    }

    void restore(const SolverState& saved) {
        const StateReader reader(saved);
        describe(reader);
        double seconds = 0.0;
        reader("seconds", seconds);
        clock_ = Clock(seconds);
        resumed_ = n_iterations_;
    }

    template <class Archive>
    void describe(Archive& archive) {
        archive("theta", theta_);
        archive("mu", mu_);
        archive("clique_theta", clique_theta_);
        archive("clique_mu", clique_mu_);
        archive("value", value_);
        archive("eta", eta_);
        archive("gain", gain_);
        archive("w", w_);
        archive("order", order_);
        archive("primal", primal_);
        archive("dual", dual_);
        archive("passes", passes_);
        archive("epoch", epoch_);
        archive("next_check", next_check_);
        archive("n_iterations", n_iterations_);
        forecast_.describe(archive);
    }

    // Beside losses of this size a smaller gap is rounding, also where there is nothing to lose.
    double small() const { return std::max(settings_.tolerance * dual_, 1e-14 * mass_); }
    bool is_small() const { return primal_ - dual_ <= small(); }

    S* theta_of(std::size_t i) { return theta_.data() + data_.first(i) * n_labels_; }
    S* mu_of(std::size_t i) { return mu_.data() + data_.first(i) * n_labels_; }
    S* clique_theta_of(std::size_t i) { return clique_theta_.data() + i * n_cliques_; }
    S* clique_mu_of(std::size_t i) { return clique_mu_.data() + i * n_cliques_; }

    // mu is the truth itself, where w and the dual are zero. No finite theta gives it, so theta only stands near by,
    // for the case that the first step, which would not look at it, is too long.
    void start_from_truth() {
        for (Aligned<S>* numbers : {&theta_, &mu_, &clique_theta_, &clique_mu_})
            std::fill(numbers->begin(), numbers->end(), S{0});
        for (std::size_t row = 0; row < data_.n_nodes(); ++row) {
            const std::size_t at = row * n_labels_ + static_cast<std::size_t>(data_.labels[row]);
            theta_[at] = static_cast<S>(kSure);
            mu_[at] = S{1};
        }
        for (const std::size_t i : order_)
            for (std::int64_t e = objective_.first_edge(i); e < objective_.first_edge(i + 1); ++e)
                clique_mu_of(i)[objective_.true_cliques()[static_cast<std::size_t>(e)]] += S{1};
    }

    void start_from(const double* parameters) {
        const double factor = 1.0 / data_.temperature;
        std::copy_n(parameters, w_.size(), w_.data());
        for (const std::size_t i : order_) {
            const std::size_t size = data_.length(i) * n_labels_;
            score(i);
            // The old state has no share; it must be numbers all the same.
            std::fill_n(theta_of(i), size, S{0});
            std::fill_n(mu_of(i), size, S{0});
            std::fill_n(clique_theta_of(i), n_cliques_, S{0});
            std::fill_n(clique_mu_of(i), n_cliques_, S{0});
            value_[i] = propose(i, 1.0, factor);
            accept(i);
        }
        rebuild();
    }

    // The point that a step of length eta leads to, into the new_ rows, and how far it is, into the moved_ rows;
    // returns its value.
    double propose(std::size_t i, double eta, double factor) {
        const std::size_t size = data_.length(i) * n_labels_;
        state_.mix(theta_of(i), scores_.data(), eta, factor, size, new_theta_.data());
        state_.mix(clique_theta_of(i), cliques(), eta, factor, n_cliques_, new_clique_theta_.data());
        const auto answer = ask(new_theta_.data(), i, new_clique_theta_.data(), new_mu_.data(), new_clique_mu_.data());
        const double inner = state_.difference(new_mu_.data(), mu_of(i), new_theta_.data(), size, moved_.data()) +
                             state_.difference(new_clique_mu_.data(), clique_mu_of(i), new_clique_theta_.data(),
                                               n_cliques_, clique_moved_.data());
        return data_.temperature * (answer.log_partition - inner) + expected_cost(i, new_mu_.data());
    }

    void accept(std::size_t i) {
        const std::size_t size = data_.length(i) * n_labels_;
        state_.keep(new_theta_.data(), size, theta_of(i));
        state_.keep(new_mu_.data(), size, mu_of(i));
        state_.keep(new_clique_theta_.data(), n_cliques_, clique_theta_of(i));
        state_.keep(new_clique_mu_.data(), n_cliques_, clique_mu_of(i));
    }

    ChainBlock::Answer ask(const double* theta, std::size_t i, const double* clique_theta, double* mu,
                           double* clique_mu) {
        const auto answer = block_.marginals(theta, data_.length(i), clique_theta, mu, clique_mu);
        if (answer.status == Status::bad_number)
            throw std::runtime_error("The scores of an example are not finite any more: the features are too large.");
        return answer;
    }

    double expected_cost(std::size_t i, const double* mu) const {
        if (!data_.cost) return 0.0;
        double total = 0.0;
        for (std::size_t t = 0; t < data_.length(i); ++t) {
            const double* cost = data_.cost + static_cast<std::size_t>(data_.labels[data_.first(i) + t]) * n_labels_;
            for (std::size_t k = 0; k < n_labels_; ++k) total += cost[k] * mu[t * n_labels_ + k];
        }
        return total;
    }

    const double* cliques() const { return w_.data() + model_.clique_begin(); }

    // Node scores of an example as w has them now, with the cost of wrong labels, into scores_.
    void score(std::size_t i) {
        const std::size_t length = data_.length(i), first = data_.first(i);
        double* out = scores_.data();
        objective_.features().score(w_.data(), first, first + length, out, scratch_.data());
        if (model_.with_ends)
            for (std::size_t k = 0; k < n_labels_; ++k) {
                out[k] += w_[model_.start_begin() + k];
                out[(length - 1) * n_labels_ + k] += w_[model_.stop_begin() + k];
            }
        if (data_.cost)
            for (std::size_t t = 0; t < length; ++t)
                for (std::size_t k = 0; k < n_labels_; ++k)
                    out[t * n_labels_ + k] +=
                        data_.cost[static_cast<std::size_t>(data_.labels[first + t]) * n_labels_ + k];
    }

    // w += scale * A_i' d; returns how much |w|^2 / 2 grows.
    double move(std::size_t i, const double* d, const double* clique_d, double scale) {
        const std::size_t length = data_.length(i), first = data_.first(i);
        double grown = objective_.features().add(d, scale, first, first + length, w_.data(), scratch_.data());
        const auto add = [&](double& weight, double change) {
            grown += change * (weight + 0.5 * change);
            weight += change;
        };
        grown +=
            routines().add_masked(clique_d, model_.clique_mask, scale, n_cliques_, w_.data() + model_.clique_begin());
        if (model_.with_ends)
            for (std::size_t k = 0; k < n_labels_; ++k) {
                add(w_[model_.start_begin() + k], scale * d[k]);
                add(w_[model_.stop_begin() + k], scale * d[(length - 1) * n_labels_ + k]);
            }
        return grown;
    }

    // One example: returns what the dual gains.
    double visit(std::size_t i) {
        const double factor = 1.0 / data_.temperature, weight = data_.weights[i];
        score(i);
        double eta = eta_[i];
        for (int tries = 0; tries < kMostTries; ++tries, eta *= kShrink) {
            const double value = propose(i, eta, factor);
            passes_ += 1.0 / static_cast<double>(order_.size());
            const double grown = move(i, moved_.data(), clique_moved_.data(), -weight);
            const double gain = weight * (value - value_[i]) - grown;
            if (gain >= 0.0) {
                accept(i);
                value_[i] = value;
                eta_[i] = tries == 0 ? std::min(1.0, eta * kGrow) : eta;
                return gain;
            }
            move(i, moved_.data(), clique_moved_.data(), weight);
        }
        eta_[i] = eta;
        return 0.0;
    }

    // One epoch in random order; false if whoever watches wants to stop.
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
            if (at + 1 < chosen_.size()) prefetch(chosen_[at + 1]);
            gain_[i] = visit(i);
            dual_ += gain_[i];
            if (at % 256 == 255 && !tell()) return false;
        }
        return true;
    }

    // Asks for the state of the example that comes next: it lies anywhere.
    void prefetch(std::size_t i) {
        const auto all = [](const S* numbers, std::size_t n) {
            const auto* bytes = reinterpret_cast<const char*>(numbers);
            for (std::size_t at = 0; at < n * sizeof(S); at += 64) prefetch_line(bytes + at);
        };
        const std::size_t size = data_.length(i) * n_labels_;
        all(theta_of(i), size);
        all(mu_of(i), size);
        all(clique_theta_of(i), n_cliques_);
        all(clique_mu_of(i), n_cliques_);
        objective_.features().prefetch(data_.first(i), data_.first(i + 1));
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
        std::fill(w_.begin(), w_.end(), 0.0);
        dual_ = 0.0;
        for (const std::size_t i : order_) {
            const std::size_t length = data_.length(i), size = length * n_labels_;
            double *d = moved_.data(), *clique_d = clique_moved_.data();
            std::copy_n(theta_of(i), size, new_theta_.data());
            std::copy_n(clique_theta_of(i), n_cliques_, new_clique_theta_.data());
            const auto answer = ask(new_theta_.data(), i, new_clique_theta_.data(), d, clique_d);
            double inner = 0.0;
            for (std::size_t j = 0; j < size; ++j) inner += new_theta_.data()[j] * d[j];
            for (std::size_t c = 0; c < n_cliques_; ++c) inner += new_clique_theta_.data()[c] * clique_d[c];
            value_[i] = data_.temperature * (answer.log_partition - inner) + expected_cost(i, d);
            state_.keep(d, size, mu_of(i));
            state_.keep(clique_d, n_cliques_, clique_mu_of(i));
            for (std::size_t t = 0; t < length; ++t)
                d[t * n_labels_ + static_cast<std::size_t>(data_.labels[data_.first(i) + t])] -= 1.0;
            for (std::int64_t e = objective_.first_edge(i); e < objective_.first_edge(i + 1); ++e)
                clique_d[objective_.true_cliques()[static_cast<std::size_t>(e)]] -= 1.0;
            move(i, d, clique_d, -data_.weights[i]);
            dual_ += data_.weights[i] * value_[i];
        }
        dual_ -= half_square();
    }

    double half_square() const {
        double sum = 0.0;
        for (const double weight : w_) sum += weight * weight;
        return 0.5 * sum;
    }

    void certify() {
        primal_ = half_square() + objective_.loss(w_.data());
        forecast_.look(primal_ - dual_, passes_);
    }

    bool tell() { return companion_.report({primal_, dual_, primal_ - dual_, passes_, clock_.seconds()}); }

    const ChainModel& model_;
    const ChainData& data_;
    const BlockDualSettings& settings_;
    const Companion& companion_;
    ChainObjective objective_;
    ChainBlock block_;
    Clock clock_{0.0};
    std::size_t n_, n_labels_, n_cliques_;
    const StateRoutines<S>& state_;
    Aligned<S> theta_, mu_, clique_theta_, clique_mu_;  // [N][K], [N][K], [n][n_cliques], [n][n_cliques]
    std::vector<double> value_, eta_, gain_, sorted_;   // [n]: T H + <D, mu>, step size, gain of the last visit
    Aligned<double> w_;
    std::vector<std::uint64_t> order_, chosen_;
    Buffer scores_, new_theta_, new_mu_, moved_, new_clique_theta_, new_clique_mu_, clique_moved_, scratch_;
    GapForecast forecast_;
    double mass_ = 0.0;  // what the losses would be at one unit for each node
    double primal_ = kInfinity, dual_ = 0.0, passes_ = 0.0;
    std::uint64_t epoch_ = 1, next_check_ = 3, n_iterations_ = 0, resumed_ = 0;
};

}  // namespace

std::size_t block_dual_bytes(const ChainModel& model, const ChainData& data, double tolerance) {
    const std::size_t n_labels = model.topology->n_labels(), n_cliques = model.topology->n_cliques();
    const std::size_t precision = tolerance >= kSingleFrom ? sizeof(float) : sizeof(double);
    return 2 * precision * (data.n_nodes() * n_labels + data.n_examples() * n_cliques) +
           2 * sizeof(double) * model.size();
}

LinearSolution solve_block_dual(const ChainModel& model, const ChainData& data, const double* start,
                                const BlockDualSettings& settings, const Companion& companion) {
    if (model.pair || data.allowed || !(data.temperature > 0.0))
        throw std::invalid_argument("block_dual needs shared clique scores, all labels and a temperature above zero");
    const SolverState* resume = companion.resume;
    const bool was_exact = resume && resume->contains("theta") && resume->at("theta").index() == 1;
    if (settings.tolerance < kSingleFrom || was_exact) {
        BlockDual<double> run(model, data, settings, companion);
        run.begin(start);
        return run.solve();
    }
    BlockDual<float> run(model, data, settings, companion);
    run.begin(start);
    const LinearSolution rough = run.solve();
    if (rough.outcome != Outcome::stalled) return rough;
    // Large weights can need more digits than single precision has.
    BlockDual<double> exact(model, data, settings, companion);
    exact.take_over(run);
    return exact.solve();
}

}  // namespace dualfield
