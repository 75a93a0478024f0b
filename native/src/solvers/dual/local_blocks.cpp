// Ascent on the dual of hinge losses on the local polytope of graphs, table by table: local_tables.hpp.
//
//   dual(mu) = sum_i c_i <D_i, mu_i> - 1/2 |w(mu)|^2,     mu_i in L
//
// The weights belong to tables that nearly agree. Now and then both sides are looked at. The dual is that of a point of
// L near the tables, or of a share of the way to it from the truth. The primal has for each
// example the lower one of two bounds of its maximum over L: by sweeps of TRW-S that begin at the messages, and by
// sweeps that begin at nothing, which are good far from the end and may stop above the maximum. Both are valid wherever
// the ascent stands.
#include "dualfield/solvers/dual/local_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "dualfield/core/memory.hpp"
#include "dualfield/core/parallel.hpp"
#include "dualfield/core/random.hpp"
#include "dualfield/regularisers/squared_norm.hpp"
#include "local_tables.hpp"

namespace dualfield {
namespace {

constexpr double kRounding = 4.0 * std::numeric_limits<double>::epsilon();
// Passes between looks: a share of those so far.
constexpr std::uint64_t kLookShare = 8, kShortestWait = 4, kLongestWait = 40;
// The structure is asked again soon where that closes so much of the gap.
constexpr double kWorthAsking = 0.05;
// Steps between reports, of which some hundred thousand take a second.
constexpr std::size_t kReportEvery = 20'000;

const GraphParts& graph_of(const Problem& problem) {
    const auto* graph = dynamic_cast<const GraphParts*>(problem.structure);
    if (!graph || !graph->has_pairs_only() || problem.allowed || problem.temperature != 0.0)
        throw std::invalid_argument("local_blocks needs graphs, all labels and T = 0");
    return *graph;
}

class LocalBlocks {
  public:
    LocalBlocks(const Problem& problem, const LocalBlocksSettings& settings, const Callbacks& callbacks)
        : problem_(problem),
          settings_(settings),
          callbacks_(callbacks),
          objective_(problem, settings.n_threads),
          tables_(problem, graph_of(problem)),
          w_(problem.size(), 0.0),
          best_(problem.size(), 0.0),
          rounded_(problem.size(), 0.0) {
        for (std::size_t i = 0; i < problem.n_examples(); ++i)
            if (problem.length(i) > 0 && problem.weights[i] > 0.0) order_.push_back(i);
    }

    void begin(const double* start) {
        if (callbacks_.resume) return restore(*callbacks_.resume);
        take(look(true));  // at weights of zero, which the result is never worse than
        if (start) take({value(start, true), 0.0, start});
    }

    LinearSolution solve() {
        std::optional<Outcome> outcome;
        if (gap() <= small()) outcome = Outcome::converged;
        while (!outcome) {
            outcome = pass_end();
            if (outcome) break;
            const bool moved = visit_all();
            n_still_ = moved ? 0 : n_still_ + 1;
            ++n_iterations_;
            const bool spent = passes_ * (1.0 + 1e-9) >= settings_.most_passes;
            const bool stuck = n_still_ > (std::uint64_t{1} << LocalTables::kLongestRest) && tables_.is_settled();
            if (n_iterations_ < next_look_ && !spent && !stuck) {
                if (is_time_to_report() && !callbacks_.report(progress())) outcome = Outcome::interrupted;
                continue;
            }
            look_closely(spent || stuck);
            next_look_ = n_iterations_ + std::clamp(n_iterations_ / kLookShare, kShortestWait, kLongestWait);
            if (gap() <= small() || spent || stuck)
                outcome = gap() <= small() ? Outcome::converged : spent ? Outcome::iteration_limit : Outcome::stalled;
            if (!callbacks_.report(progress()) && !outcome) outcome = Outcome::interrupted;
        }
        if (*outcome == Outcome::interrupted || *outcome == Outcome::stopped) take(look(true));
        callbacks_.report(progress());
        LinearSolution solution;
        solution.outcome = *outcome;
        solution.parameters.assign(best_.begin(), best_.end());
        solution.objective = primal_;
        solution.gap = gap();
        solution.n_iterations = n_iterations_;
        return solution;
    }

  private:
    // What is known of a point: its value, and a bound from below on all values.
    struct Look {
        double primal, dual;
        const double* point;
    };

    // Never less than what rounding can hide in the difference of the two values.
    static double gap_between(double primal, double dual) {
        return std::max(primal - dual, kRounding * (std::abs(primal) + std::abs(dual)));
    }
    double gap() const { return gap_between(primal_, dual_); }
    double small() const { return settings_.tolerance * dual_; }
    Progress progress() const { return {primal_, dual_, gap(), passes_, clock_.seconds()}; }

    // Not after every pass of a small problem.
    bool is_time_to_report() {
        if (n_unreported_ < kReportEvery) return false;
        n_unreported_ = 0;
        return true;
    }

    // False if nothing moved.
    bool visit_all() {
        RandomStream random(settings_.seed, n_iterations_ + 1);
        shuffle(order_, random);
        LocalTables::Visit all;
        for (const std::size_t i : order_) {
            const LocalTables::Visit one = tables_.visit(i, n_iterations_, w_.data());
            all = {all.n_steps + one.n_steps, all.n_moved + one.n_moved};
        }
        // Tables that are left out cost nothing.
        passes_ += static_cast<double>(all.n_steps) / static_cast<double>(std::max<std::size_t>(tables_.n_tables(), 1));
        n_unreported_ += all.n_steps;
        return all.n_moved > 0;
    }

    double half_square(const double* point) const { return dualfield::half_square({point, w_.size()}); }
    // At least the relaxed objective; by sweeps from the messages alone, or from nothing, too.
    double value(const double* w, bool asks_structure) {
        const std::size_t n = problem_.n_examples(), n_threads = std::max<std::size_t>(settings_.n_threads, 1);
        known_.assign(n, kInfinity);
        if (asks_structure) objective_.losses(w, known_.data());
        std::vector<LocalTables::Scratch> scratch;
        for (std::size_t i = 0; i < n_threads; ++i) scratch.emplace_back(tables_);
        parallel_for(n, n_threads, [&](std::size_t worker, std::size_t i) {
            const double by_messages = tables_.loss(i, w, scratch[worker]);
            if (!(known_[i] <= by_messages)) known_[i] = by_messages;
        });
        double total = half_square(w);
        for (std::size_t i = 0; i < n; ++i) total += problem_.weights[i] * known_[i];
        if (!std::isfinite(total))
            throw std::runtime_error("The scores of an example are not finite any more: the features are too large.");
        return total;
    }
    // At most the relaxed minimum: a share s of the way from the truth to a point of L has s E - s^2 / 2 |v|^2.
    double bound() {
        std::fill(rounded_.begin(), rounded_.end(), 0.0);
        double cost = 0.0;
        for (std::size_t i = 0; i < problem_.n_examples(); ++i)
            if (problem_.length(i) > 0 && problem_.weights[i] > 0.0)
                cost += tables_.add_rounded(i, w_.data(), rounded_.data());
        const double square = 2.0 * half_square(rounded_.data());
        const double share = square > cost ? cost / square : 1.0;
        return share * cost - 0.5 * share * share * square;
    }
    Look look(bool asks_structure) { return {value(w_.data(), asks_structure), bound(), w_.data()}; }
    // A look that asks the structure, which may cost more than many passes, as long as that makes a difference: where
    // it does not, it is asked again after twice as many looks.
    void look_closely(bool is_last) {
        Look found = look(false);
        if (gap_between(found.primal, std::max(dual_, found.dual)) > settings_.tolerance * dual_ &&
            (n_without_ == 0 || is_last)) {
            const double lower = value(w_.data(), true);
            const bool helps = found.primal - lower > kWorthAsking * (found.primal - found.dual);
            wait_ = helps ? 0 : std::min(2 * wait_ + 1, kLongestWait);
            n_without_ = wait_;
            found.primal = lower;
        } else if (n_without_ > 0) {
            --n_without_;
        }
        take(found);
    }
    void take(const Look& found) {
        dual_ = std::max(dual_, found.dual);
        if (!(found.primal < primal_)) return;
        primal_ = found.primal;
        std::copy_n(found.point, best_.size(), best_.data());
    }

    std::optional<Outcome> pass_end() {
        if (n_iterations_ == 0 || n_iterations_ == resumed_ || !callbacks_.pass_end) return std::nullopt;
        // Another look, which leaves no trace.
        std::optional<Look> found;
        const auto now = [&]() -> const Look& {
            if (!found) {
                found = look(n_without_ == 0);
                found->dual = std::max(found->dual, dual_);
                if (primal_ <= found->primal) found = Look{primal_, found->dual, best_.data()};
            }
            return *found;
        };
        const auto progress = [&] {
            return Progress{now().primal, now().dual, gap_between(now().primal, now().dual), passes_, clock_.seconds()};
        };
        const auto parameters = [&] { return std::vector<double>(now().point, now().point + w_.size()); };
        const auto state = [&] {
            StateWriter writer;
            describe(writer);
            writer("seconds", clock_.seconds());
            return writer.release();
        };
        return callbacks_.pass_end({progress, parameters, state});
    }
    template <class Archive>
    void describe(Archive& archive) {
        tables_.describe(archive);
        archive("w", w_);
        archive("best", best_);
        archive.permutation("order", order_);
        archive("primal", primal_);
        archive("dual", dual_);
        archive.at_least("passes", passes_, 0.0);
        archive("n_iterations", n_iterations_);
        archive("next_look", next_look_);
        archive("n_still", n_still_);
        archive("wait", wait_);
        archive("n_without", n_without_);
    }
    void restore(const SolverState& saved) {
        const StateReader reader(saved);
        describe(reader);
        double seconds = 0.0;
        reader("seconds", seconds);
        clock_ = Clock(seconds);
        resumed_ = n_iterations_;
        if (!tables_.is_valid()) throw StateError("nodes, pairs or n_idle are out of range");
        if (next_look_ > n_iterations_ + kLongestWait) throw StateError("next_look is out of range");
        if (wait_ > kLongestWait || n_without_ > kLongestWait) throw StateError("wait is out of range");
    }

    const Problem& problem_;
    const LocalBlocksSettings& settings_;
    const Callbacks& callbacks_;
    Objective objective_;
    LocalTables tables_;
    std::vector<std::uint64_t> order_;
    Aligned<double> w_, best_, rounded_;
    std::vector<double> known_;  // [n]: losses
    std::size_t n_unreported_ = 0;
    Clock clock_;
    double primal_ = kInfinity, dual_ = 0.0, passes_ = 0.0;
    std::uint64_t n_iterations_ = 0, next_look_ = kShortestWait, n_still_ = 0, resumed_ = 0;
    std::uint64_t wait_ = 0, n_without_ = 0;  // looks without the structure: in a row, and those left
};

}  // namespace

std::size_t local_blocks_bytes(const Problem& problem) {
    const GraphParts& graph = graph_of(problem);
    const std::size_t k = graph.n_labels(), n_edges = graph.first_edge(problem.n_examples());
    return sizeof(double) * (problem.n_nodes() * (k + 3) + n_edges * (k * k + 4 * k + 4) + 3 * problem.size());
}

LinearSolution solve_local_blocks(const Problem& problem, const double* start, const LocalBlocksSettings& settings,
                                  const Callbacks& callbacks) {
    LocalBlocks run(problem, settings, callbacks);
    run.begin(start);
    return run.solve();
}

}  // namespace dualfield
