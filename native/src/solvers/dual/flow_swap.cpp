// The dual of the hinge on chains, by swapping mass between paths of a sparse flow; and on trees and graphs, where the
// flow is sparse tables of cliques and segments are sets of nodes that hang together (clique_ascent.hpp).
//
//   dual(mu) = sum_i c_i <D_i, mu_i> - 1/2 |w(mu)|^2,     w(mu) = sum_i c_i A_i' (u_i - mu_i)
//
// mu_i, a distribution over labellings, is kept as the masses of the few edges that have any. One step takes two
// labellings, the best one (with the cost of wrong labels) and the worst one that has mass, and cuts them into the
// segments on which they differ: each segment gets a step of its own, exact along its line. A single step length for
// the whole sequence is what makes the Frank-Wolfe method slow here. Once the best labellings are part of the support
// nearly all work is left between labels that have mass already: most sweeps therefore look at nothing else, region by
// region, where a region is a run of nodes with more than one label. Examples are visited densely, over all labels,
// only where the last certificate has shown that a labelling outside of the support is better.
//
// Any w bounds the minimum from above and any flow from below. Single iterates w(mu) are noisy: the polynomially
// weighted mean of those after each sweep is the better upper bound for most of the way.
#include "dualfield/solvers/dual/flow_swap.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "clique_ascent.hpp"
#include "dualfield/core/random.hpp"
#include "flow_ascent.hpp"

namespace dualfield {
namespace {

constexpr int kSweepsPerCycle = 10;
// Examples are swept in random order, or the ascent is many times slower; but in runs of so many neighbours, which
// share cache lines.
constexpr std::size_t kRun = 4;
constexpr double kMeanPower = 8.0;
constexpr std::uint64_t kFullCycles = 2;  // before the first certificate every example is visited densely
constexpr std::uint64_t kBothEvery = 4;   // looks
constexpr int kMostIdleLooks = 20;
constexpr double kRounding = 1e-15;  // of a sum, next to its terms

// Longer steps than the best one along each line make sweeps of small steps faster; below 2 the dual still grows.
constexpr double kSparse = 1.7, kDense = 1.8;

// Ascent: the dual point, its weights and the moves, FlowAscent for chains and CliqueAscent for trees and graphs.
template <class Ascent>
class FlowSwap : public Ascent {
  public:
    FlowSwap(const Problem& problem, const FlowSwapSettings& settings, const Callbacks& callbacks)
        : Ascent(problem, settings.n_threads),
          settings_(settings),
          callbacks_(callbacks),
          // Many nodes share each weight where there are few weights: then small careful steps are better.
          relaxation_(problem.size() < problem.n_nodes() ? kDense : kSparse),
          best_(problem.size(), 0.0),
          losses_(problem.n_examples(), 0.0),
          violation_(problem.n_examples(), 0.0),
          selected_(this->order_) {}

    void begin(const double* start, const SolverState* flow) {
        if (callbacks_.resume) return restore(*callbacks_.resume);
        if (flow)
            flow_.read(*flow);
        else
            flow_.begin_at_truth();
        count_open();
        rebuild();
        if (start) {
            std::copy_n(start, w_.size(), best_.data());
            primal_ = primal_at(best_.data());
        }
    }

    LinearSolution solve() {
        LinearSolution solution;
        std::optional<Outcome> outcome;
        while (!outcome) {
            outcome = pass_end();
            if (!outcome && !cycle()) outcome = Outcome::interrupted;
            if (!outcome) outcome = look();
        }
        if (*outcome != Outcome::converged && *outcome != Outcome::iteration_limit) {
            rebuild();
            certify();
        }
        callbacks_.report(progress());
        solution.outcome = *outcome;
        solution.parameters.assign(best_.begin(), best_.end());
        solution.objective = primal_;
        solution.gap = gap();
        solution.n_iterations = n_iterations_;
        return solution;
    }

  private:
    using Ascent::compact, Ascent::count_open, Ascent::dual_, Ascent::expected_cost, Ascent::flow_, Ascent::half_square,
        Ascent::lists_, Ascent::map_, Ascent::mean_, Ascent::n_, Ascent::n_open_, Ascent::n_rows, Ascent::objective_,
        Ascent::order_, Ascent::passes_, Ascent::prefetch, Ascent::problem_, Ascent::rebuild, Ascent::support_maximum,
        Ascent::visit_densely, Ascent::visit_support, Ascent::w_;
    using Paths = typename Ascent::Paths;

    // Never less than what rounding can hide in the difference of the two values.
    double gap() const { return std::max(primal_ - dual_, kRounding * (std::abs(primal_) + std::abs(dual_))); }
    double small() const { return settings_.tolerance * dual_; }
    bool is_small() const { return gap() <= small(); }
    // Some dense visits, then sweeps over the support; false if the callback ends the solve.
    bool cycle() {
        shuffle(selected_);
        for (std::size_t at = 0; at < selected_.size(); ++at) {
            if (at + 1 < selected_.size()) map_.prefetch(selected_[at + 1]);
            visit_densely(selected_[at]);
            if (at % 256 == 255 && !callbacks_.report(progress())) return false;
        }
        lists_.is_written_through = false;
        lists_.begin_means();
        const bool goes_on = sweeps();
        lists_.end_means();
        lists_.is_written_through = true;
        if (goes_on && std::has_single_bit(++n_iterations_)) compact();
        return goes_on;
    }

    bool sweeps() {
        for (int sweep = 0; sweep < kSweepsPerCycle; ++sweep) {
            active_.clear();
            std::size_t n_open = 0;
            for (const std::uint64_t i : order_)
                if (n_open_[i] > 0) {
                    active_.push_back(i);
                    n_open += static_cast<std::size_t>(n_open_[i]);
                }
            shuffle_runs();
            for (std::size_t at = 0; at < active_.size(); ++at) {
                if (at + 2 < active_.size()) prefetch(active_[at + 2], &FeatureLists::prefetch_lists);
                if (at + 1 < active_.size()) prefetch(active_[at + 1], &FeatureLists::prefetch_weights);
                visit_support(active_[at], 1, relaxation_);
            }
            passes_ += static_cast<double>(n_open) / std::max(static_cast<double>(n_rows()), 1.0);
            lists_.take_into_means((kMeanPower + 1.0) / (static_cast<double>(++n_sweeps_) + kMeanPower));
            if (!callbacks_.report(progress())) return false;
        }
        return true;
    }

    void shuffle(std::vector<std::uint64_t>& order) {
        RandomStream random(settings_.seed, ++n_shuffles_);
        dualfield::shuffle(order, random);
    }

    // Puts the active examples, which are in the order of the data, into random order run by run.
    void shuffle_runs() {
        runs_.resize((active_.size() + kRun - 1) / kRun);
        std::iota(runs_.begin(), runs_.end(), std::uint64_t{0});
        shuffle(runs_);
        swept_.clear();
        for (const std::uint64_t run : runs_) {
            const auto begin = active_.begin() + static_cast<std::ptrdiff_t>(run * kRun);
            swept_.insert(
                swept_.end(), begin,
                begin + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(kRun, active_.size() - run * kRun)));
        }
        active_.swap(swept_);
    }

    // After a cycle: certifies now and then; an outcome where it is over.
    std::optional<Outcome> look() {
        const bool spent = passes_ >= settings_.most_passes;
        if (n_iterations_ <= kFullCycles || (n_iterations_ % 2 == 0 && !spent)) {
            if (!spent) return std::nullopt;
        }
        const double dual_before = last_dual_, primal_before = primal_;
        certify();
        if (is_small() || spent) {
            rebuild();
            if (is_small()) return Outcome::converged;
            if (spent) return Outcome::iteration_limit;
        }
        last_dual_ = dual_;
        const bool idle = dual_ - dual_before <= 1e-14 * std::abs(dual_) && primal_ >= primal_before;
        n_idle_ = idle ? n_idle_ + 1 : 0;
        if (n_idle_ >= kMostIdleLooks) return Outcome::stalled;
        selected_.clear();
        // What is left out adds up to a small part of what is allowed.
        const double enough = 0.05 * small() / static_cast<double>(std::max<std::size_t>(order_.size(), 1));
        for (const std::uint64_t i : order_)
            if (problem_.weights[i] * violation_[i] > enough) selected_.push_back(i);
        if (!callbacks_.report(progress())) return Outcome::interrupted;
        return std::nullopt;
    }

    // Losses at w or at the mean, whichever was better before, and now and then at both; the best weights are kept. The
    // same look tells where labellings outside of the support are better.
    void certify() {
        dual_ = expected_cost() - half_square(w_.data());
        const bool look_at_both = n_looks_++ % kBothEvery == 0 || n_sweeps_ == 0;
        const double at_leader = look_at(leader());
        if (!look_at_both || n_sweeps_ == 0) return;
        const double* other = mean_leads_ ? w_.data() : mean_.data();
        const double at_other = primal_at(other);
        keep_if_better(at_other, other);
        if (at_other < at_leader) mean_leads_ = 1 - mean_leads_;
    }
    const double* leader() const { return mean_leads_ ? mean_.data() : w_.data(); }
    double look_at(const double* point) {
        std::vector<Paths> workers(std::max<std::size_t>(settings_.n_threads, 1));
        objective_.losses(point, losses_.data(),
                          [&](std::size_t worker, std::size_t i, const ScoreView& scores, double maximum) {
                              violation_[i] = maximum - support_maximum(workers[worker], point, i, scores);
                          });
        const double primal = half_square(point) + weighted(losses_);
        keep_if_better(primal, point);
        return primal;
    }
    void keep_if_better(double primal, const double* point) {
        if (!(primal < primal_)) return;
        primal_ = primal;
        std::copy_n(point, best_.size(), best_.data());
    }
    double primal_at(const double* point) {
        objective_.losses(point, losses_.data());
        return half_square(point) + weighted(losses_);
    }
    double weighted(const std::vector<double>& losses) const {
        double sum = 0.0;
        for (std::size_t i = 0; i < n_; ++i) sum += problem_.weights[i] * losses[i];
        return sum;
    }
    std::optional<Outcome> pass_end() {
        if (n_iterations_ == 0 || n_iterations_ == resumed_ || !callbacks_.pass_end) return std::nullopt;
        // Another look, which leaves no trace: the mean of now may be better than the best weights so far.
        std::optional<double> at_mean;
        const auto mean_is_best = [&] {
            if (!at_mean) at_mean = primal_at(mean_.data());
            return *at_mean < primal_;
        };
        const auto now = [&] {
            const double primal = mean_is_best() ? *at_mean : primal_;
            return Progress{primal, dual_, primal - dual_, passes_, clock_.seconds()};
        };
        const auto parameters = [&] {
            const Aligned<double>& best = mean_is_best() ? mean_ : best_;
            return std::vector<double>(best.begin(), best.end());
        };
        const auto state = [&] {
            StateWriter writer;
            describe(writer);
            writer("seconds", clock_.seconds());
            SolverState all = writer.release();
            all.merge(this->flow());
            return all;
        };
        return callbacks_.pass_end({now, parameters, state});
    }
    void restore(const SolverState& saved) {
        const StateReader reader(saved);
        flow_.read(saved);
        count_open();
        describe(reader);
        lists_.read_again();
        double seconds = 0.0;
        reader("seconds", seconds);
        clock_ = Clock(seconds);
        resumed_ = n_iterations_;
        // The upper bound is claimed for the best weights: it must be theirs.
        if (primal_ < kInfinity && !(std::abs(primal_at(best_.data()) - primal_) <= 1e-9 * std::max(1.0, primal_)))
            throw StateError("primal is not the objective of its weights");
    }
    template <class Archive>
    void describe(Archive& archive) {
        archive("w", w_);
        archive("mean", mean_);
        archive("best", best_);
        archive.permutation("order", order_);
        archive.subset("selected", selected_, order_);
        archive("primal", primal_);
        archive("dual", dual_);
        archive("last_dual", last_dual_);
        archive.at_least("passes", passes_, 0.0);
        archive("n_iterations", n_iterations_);
        archive("n_sweeps", n_sweeps_);
        archive("n_shuffles", n_shuffles_);
        archive("n_idle", n_idle_);
        archive("n_looks", n_looks_);
        archive("mean_leads", mean_leads_);
    }

    Progress progress() const { return {primal_, dual_, gap(), passes_, clock_.seconds()}; }

    const FlowSwapSettings& settings_;
    const Callbacks& callbacks_;
    double relaxation_;
    Aligned<double> best_;
    std::vector<double> losses_, violation_;
    std::vector<std::uint64_t> selected_, active_, runs_, swept_;
    Clock clock_;
    double primal_ = kInfinity, last_dual_ = -kInfinity;
    std::uint64_t n_iterations_ = 0, n_sweeps_ = 0, n_shuffles_ = 0, n_idle_ = 0, n_looks_ = 0, mean_leads_ = 1,
                  resumed_ = 0;
};

template <class Ascent>
LinearSolution swap(const Problem& problem, const double* start, const SolverState* flow,
                    const FlowSwapSettings& settings, const Callbacks& callbacks, SolverState* flow_out) {
    FlowSwap<Ascent> run(problem, settings, callbacks);
    run.begin(start, flow);
    LinearSolution solution = run.solve();
    if (flow_out) *flow_out = run.flow();
    return solution;
}

bool has_junctions(const Structure& structure) {
    JunctionParts parts;
    return structure.n_examples() == 0 || structure.list_junction(0, parts);
}

}  // namespace

LinearSolution solve_flow_swap(const Problem& problem, const double* start, const SolverState* flow,
                               const FlowSwapSettings& settings, const Callbacks& callbacks, SolverState* flow_out) {
    const ChainStructure* chain = problem.structure->chain();
    const bool is_flow = chain && !chain->with_edges() && chain->topology().order() == 1;
    if ((!is_flow && !has_junctions(*problem.structure)) || problem.allowed || problem.temperature != 0.0)
        throw std::invalid_argument(
            "flow_swap needs chains of order 1 with shared clique scores, exact trees or graphs, all labels, and T = "
            "0");
    return is_flow ? swap<FlowAscent>(problem, start, flow, settings, callbacks, flow_out)
                   : swap<CliqueAscent>(problem, start, flow, settings, callbacks, flow_out);
}

}  // namespace dualfield
