// The hinge on chains that are read block by block.
//
//   dual(mu) = sum_i c_i <D_i, mu_i> - 1/2 |w(mu)|^2,     w(mu) = sum_i c_i A_i' (u_i - mu_i)
//
// A sweep takes the blocks in a new random order and visits their chains, as flow_visits.hpp says; from the ninth on
// two of three visit only those that gained most. Any w bounds the minimum from above and any flow from below: the best
// of the last weights and of the weighted mean of those after each sweep is kept. A gap is claimed for weights and a
// dual value that were summed up anew.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "../dual/gap_forecast.hpp"
#include "../dual/selection.hpp"
#include "block_flows.hpp"
#include "block_stream.hpp"
#include "dualfield/core/random.hpp"
#include "dualfield/regularisers/squared_norm.hpp"
#include "dualfield/solvers/streamed/streamed_dual.hpp"
#include "flow_visits.hpp"

namespace dualfield {
namespace {

constexpr double kRounding = 4.0 * std::numeric_limits<double>::epsilon();
constexpr double kMeanPower = 8.0;
constexpr int kMostIdle = 6;  // sweeps without gain, of which some are selective
// Edges for each node beside those of the truth, for which memory is set aside; where there are more, fewer blocks
// stay.
constexpr double kEdges = 0.5;

class StreamedHinge {
  public:
    StreamedHinge(BlockStream& blocks, const BlockDualSettings& settings, const Callbacks& callbacks)
        : blocks_(blocks),
          settings_(settings),
          callbacks_(callbacks),
          w_(blocks.size(), 0.0),
          mean_(blocks.size(), 0.0),
          best_(blocks.size(), 0.0) {}

    static std::size_t state_bytes(const BlockSizes& sizes) {
        const auto edges = static_cast<std::size_t>(kEdges * static_cast<double>(sizes.n_nodes));
        return sizes.n_examples * sizeof(double) + sizes.n_nodes * sizeof(std::uint32_t) + edges * sizeof(FlowEdge);
    }

    void begin(const double* start) {
        if (callbacks_.resume) return restore(*callbacks_.resume);
        if (start) keep_if_better(half_square(start) + losses({start})[0], start);
    }

    LinearSolution solve() {
        std::optional<Outcome> outcome;
        while (!outcome) {
            outcome = pass_end();
            if (outcome) break;
            const double before = dual_;
            if (!sweep()) {
                outcome = Outcome::interrupted;
                break;
            }
            ++n_iterations_;
            n_idle_ = dual_ - before <= 1e-15 * std::abs(dual_) ? n_idle_ + 1 : 0;
            const bool spent = is_spent(), stuck = n_idle_ >= kMostIdle;
            if (n_iterations_ < next_look_ && !spent && !stuck) continue;
            certify();
            if (is_small() || spent || stuck) {
                // What is claimed is claimed for weights and a dual without what rounding has left in them.
                rebuild();
                certify();
                if (is_small() || spent || stuck)
                    outcome = is_small() ? Outcome::converged : spent ? Outcome::iteration_limit : Outcome::stalled;
            }
            next_look_ = n_iterations_ + forecast_.passes_to_wait(small());
            if (!outcome && !callbacks_.report(progress())) outcome = Outcome::interrupted;
        }
        if (*outcome == Outcome::interrupted || *outcome == Outcome::stopped) {
            rebuild();
            certify();
        }
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
    double gap() const { return std::max(primal_ - dual_, kRounding * (std::abs(primal_) + std::abs(dual_))); }
    double small() const { return settings_.tolerance * dual_; }
    bool is_small() const { return gap() <= small(); }
    bool is_spent() const { return passes_ * (1.0 + 1e-9) >= settings_.most_passes; }
    Progress progress() const { return {primal_, dual_, gap(), passes_, clock_.seconds()}; }

    static bool counts(const Problem& problem, std::size_t i) {
        return problem.length(i) > 0 && problem.weights[i] > 0.0;
    }

    // False if the callback ends the solve.
    bool sweep() {
        const std::uint64_t epoch = n_iterations_ + 1;
        RandomStream random(settings_.seed, epoch);
        std::vector<std::size_t> order = blocks_.every_block(), visits;
        shuffle(order, random);
        const double least = is_selective(epoch) ? least_gain_ : 0.0;
        const double share = 1.0 / static_cast<double>(blocks_.n_examples());
        GainSums gains;
        std::size_t n_heard = 0;
        bool goes_on = true;
        blocks_.visit(order, [&](BlockStream::Blocks group) {
            for (VisitedBlock* block : group) {
                const Problem& problem = block->problem();
                BlockFlows flows(problem, block->state);
                FlowVisits at_work(problem, flows.flow);
                visits.clear();
                for (std::size_t i = 0; i < problem.n_examples(); ++i)
                    if (counts(problem, i) && flows.gain[i] >= least) visits.push_back(i);
                shuffle(visits, random);
                for (const std::size_t i : visits) {
                    flows.gain[i] = std::max(at_work.visit(i, w_.data()), 0.0);
                    dual_ += flows.gain[i];
                    passes_ += share;
                    if (n_heard++ % 256 == 255) goes_on = goes_on && callbacks_.report(progress());
                    if (!goes_on || is_spent()) break;
                }
                for (std::size_t i = 0; i < problem.n_examples(); ++i) gains.add(flows.gain[i]);
                block->state = flows.bytes();
                block->is_changed = true;
            }
            return goes_on && !is_spent();
        });
        least_gain_ = gains.selected_gain();
        // Iterates wander round the minimum: later ones count more.
        const double part = (kMeanPower + 1.0) / (static_cast<double>(epoch) + kMeanPower);
        for (std::size_t j = 0; j < w_.size(); ++j) mean_[j] += part * (w_[j] - mean_[j]);
        return goes_on;
    }

    // w and the dual value from the flows.
    void rebuild() {
        std::fill(w_.begin(), w_.end(), 0.0);
        dual_ = sum_up(w_.data(), true) - half_square(w_.data());
    }
    // The costs of the flows; w [size] is moved by them from zero.
    double sum_up(double* w, bool balances) {
        double costs = 0.0;
        const std::vector<std::size_t> order = blocks_.every_block();
        blocks_.visit(order, [&](BlockStream::Blocks group) {
            for (VisitedBlock* block : group) {
                const Problem& problem = block->problem();
                BlockFlows flows(problem, block->state);
                FlowVisits at_work(problem, flows.flow);
                for (std::size_t i = 0; i < problem.n_examples(); ++i) {
                    if (!counts(problem, i)) continue;
                    flows.flow.balance(problem.first(i), problem.length(i));
                    at_work.add(i, w);
                    costs += problem.weights[i] * flows.flow.expected_cost(i);
                }
                if (!balances) continue;
                block->state = flows.bytes();
                block->is_changed = true;
            }
            return true;
        });
        return costs;
    }

    double half_square(const double* point) const { return dualfield::half_square({point, w_.size()}); }
    // The losses at several points, in one pass over the data.
    std::vector<double> losses(const std::vector<const double*>& points) {
        std::vector<double> parts(points.size() * blocks_.n_blocks(), 0.0), sums(points.size(), 0.0);
        blocks_.look([&](VisitedBlock& block) {
            for (std::size_t p = 0; p < points.size(); ++p)
                parts[p * blocks_.n_blocks() + block.number] = block.objective().loss(points[p]);
        });
        for (std::size_t j = 0; j < parts.size(); ++j) sums[j / blocks_.n_blocks()] += parts[j];
        return sums;
    }
    void keep_if_better(double value, const double* point) {
        if (!(value < primal_)) return;
        primal_ = value;
        std::copy_n(point, best_.size(), best_.data());
    }
    void certify() {
        const std::vector<double> found = losses({w_.data(), mean_.data()});
        keep_if_better(half_square(w_.data()) + found[0], w_.data());
        if (n_iterations_ > 0) keep_if_better(half_square(mean_.data()) + found[1], mean_.data());
        forecast_.look(gap(), passes_);
    }

    struct Look {
        double primal, dual;
        const double* point;
    };
    std::optional<Outcome> pass_end() {
        if (n_iterations_ == 0 || n_iterations_ == resumed_ || !callbacks_.pass_end) return std::nullopt;
        // Another look, which leaves no trace.
        std::optional<Look> seen;
        const auto look = [&]() -> const Look& {
            if (!seen) {
                const std::vector<double> found = losses({w_.data(), mean_.data()});
                std::vector<double> anew(w_.size(), 0.0);
                const double costs = sum_up(anew.data(), false);
                seen = Look{primal_, costs - half_square(anew.data()), best_.data()};
                const double at_w = half_square(w_.data()) + found[0], at_mean = half_square(mean_.data()) + found[1];
                if (at_w < seen->primal) *seen = {at_w, seen->dual, w_.data()};
                if (at_mean < seen->primal) *seen = {at_mean, seen->dual, mean_.data()};
            }
            return *seen;
        };
        const auto now = [&] {
            const double primal = look().primal, dual = look().dual, scale = std::abs(primal) + std::abs(dual);
            return Progress{primal, dual, std::max(primal - dual, kRounding * scale), passes_, clock_.seconds()};
        };
        const auto parameters = [&] { return std::vector<double>(look().point, look().point + w_.size()); };
        const auto state = [&] {
            StateWriter writer;
            describe(writer);
            writer("seconds", clock_.seconds());
            writer("places", blocks_.keep());
            return writer.release();
        };
        return callbacks_.pass_end({now, parameters, state});
    }
    template <class Archive>
    void describe(Archive& archive) {
        archive("w", w_);
        archive("mean", mean_);
        archive("best", best_);
        archive("primal", primal_);
        archive("dual", dual_);
        archive("least_gain", least_gain_);
        archive.at_least("passes", passes_, 0.0);
        archive("n_iterations", n_iterations_);
        archive("next_look", next_look_);
        archive("n_idle", n_idle_);
        forecast_.describe(archive);
    }
    void restore(const SolverState& saved) {
        const StateReader reader(saved);
        describe(reader);
        double seconds = 0.0;
        reader("seconds", seconds);
        clock_ = Clock(seconds);
        resumed_ = n_iterations_;
        blocks_.restore(reader.find<std::uint64_t>("places"));
        // The upper bound is claimed for the best weights: it must be theirs.
        if (primal_ < kInfinity) {
            const double found = half_square(best_.data()) + losses({best_.data()})[0];
            if (!(std::abs(found - primal_) <= 1e-9 * std::max(1.0, primal_)))
                throw StateError("primal is not the objective of its weights");
        }
    }

    BlockStream& blocks_;
    const BlockDualSettings& settings_;
    const Callbacks& callbacks_;
    Aligned<double> w_, mean_, best_;
    GapForecast forecast_;
    Clock clock_;
    double primal_ = kInfinity, dual_ = 0.0, passes_ = 0.0, least_gain_ = 0.0;
    std::uint64_t n_iterations_ = 0, next_look_ = 3, n_idle_ = 0, resumed_ = 0;
};

}  // namespace

LinearSolution solve_streamed_hinge(const BlockSource& source, StateStore& store, const double* start,
                                    const BlockDualSettings& settings, const StreamSettings& streaming,
                                    const Callbacks& callbacks) {
    BlockStream blocks(source, store, streaming);
    blocks.plan(&StreamedHinge::state_bytes);
    StreamedHinge run(blocks, settings, callbacks);
    run.begin(start);
    return run.solve();
}

}  // namespace dualfield
