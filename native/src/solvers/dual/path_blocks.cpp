// Block-coordinate ascent on the dual of hinge losses, for any structure that can name its best labelling.
//
//   dual(alpha) = sum_i c_i <D_i, alpha_i> - 1/2 |w(alpha)|^2,     w(alpha) = sum_i c_i sum_y alpha_i(y) A_i' (u_i -
//   u(y))
//
// alpha_i is a mixture of labellings that the structure has returned. A visit asks for the best one now and moves mass
// to it from the worst one that has some, as far as the slope or the mass allows (pairwise Frank-Wolfe steps,
// Lacoste-Julien and Jaggi 2015, in blocks); then it goes on among those it has, which needs no structure. The square
// of a direction comes from how much |w|^2 / 2 grows when w is moved along it.
#include "dualfield/solvers/dual/path_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "dualfield/core/memory.hpp"
#include "dualfield/core/random.hpp"
#include "dualfield/regularisers/squared_norm.hpp"
#include "gap_forecast.hpp"
#include "labelling_mixture.hpp"
#include "parts_of_one.hpp"

namespace dualfield {
namespace {

constexpr double kRounding = 4.0 * std::numeric_limits<double>::epsilon();
constexpr int kMostSteps = 10;   // among the labellings of an example, after its best one was asked for
constexpr double kSolved = 0.1;  // they go on until this share of the slope is left
constexpr double kNoSlope = 1e-13;

class PathBlocks {
  public:
    PathBlocks(const Problem& problem, const PathBlocksSettings& settings, const Callbacks& callbacks)
        : problem_(problem),
          map_(*problem.scores),
          layout_(problem.structure->parts()),
          settings_(settings),
          callbacks_(callbacks),
          objective_(problem, settings.n_threads),
          block_(problem.structure->block()),
          w_(problem.size(), 0.0),
          mean_(problem.size(), 0.0),
          best_(problem.size(), 0.0) {
        std::size_t largest = 0;
        for (std::size_t i = 0; i < problem.n_examples(); ++i) {
            largest = std::max(largest, layout_.n_own(i));
            mixtures_.emplace_back(problem.truth(i), problem.length(i));
            if (problem.length(i) > 0 && problem.weights[i] > 0.0) order_.push_back(i);
        }
        for (Buffer* buffer : {&own_, &difference_}) buffer->require(largest + kLanes);
        shared_difference_.require(std::max<std::size_t>(layout_.n_shared, 1));
        scratch_.require(map_.scratch_size());
        labels_.resize(problem.longest());
    }

    void begin(const double* start) {
        if (callbacks_.resume) return restore(*callbacks_.resume);
        if (start) keep_if_better(start);
    }

    LinearSolution solve() {
        std::optional<Outcome> outcome;
        while (!outcome) {
            outcome = pass_end();
            if (outcome) break;
            const double before = dual_;
            if (!visit_all()) {
                outcome = Outcome::interrupted;
                break;
            }
            ++n_iterations_;
            const bool spent = passes_ * (1.0 + 1e-9) >= settings_.most_passes;
            const bool stuck = dual_ - before <= 1e-15 * std::abs(dual_);
            if (n_iterations_ < next_look_ && !spent && !stuck) continue;
            certify();
            if (gap() <= small() || spent || stuck)
                outcome = gap() <= small() ? Outcome::converged : spent ? Outcome::iteration_limit : Outcome::stalled;
            next_look_ = n_iterations_ + forecast_.passes_to_wait(small());
            if (!outcome && !callbacks_.report(progress())) outcome = Outcome::interrupted;
        }
        if (*outcome == Outcome::interrupted || *outcome == Outcome::stopped) certify();
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
    // Never less than what rounding can hide in the difference of the two values.
    double gap() const { return std::max(primal_ - dual_, kRounding * (std::abs(primal_) + std::abs(dual_))); }
    double small() const { return settings_.tolerance * dual_; }
    Progress progress() const { return {primal_, dual_, gap(), passes_, clock_.seconds()}; }

    bool visit_all() {
        RandomStream random(settings_.seed, n_iterations_ + 1);
        shuffle(order_, random);
        for (std::size_t at = 0; at < order_.size(); ++at) {
            if (at + 1 < order_.size()) map_.prefetch(order_[at + 1]);
            dual_ += visit(order_[at]);
            mixtures_[order_[at]].tidy();
            passes_ += 1.0 / static_cast<double>(order_.size());
            if (at % 256 == 255 && !callbacks_.report(progress())) return false;
        }
        rebuild();
        // Iterates wander round the minimum: later ones count more.
        const double share = 3.0 / (static_cast<double>(n_iterations_) + 3.0);
        for (std::size_t j = 0; j < w_.size(); ++j) mean_[j] += share * (w_[j] - mean_[j]);
        return true;
    }

    ScoreView score(std::size_t i) {
        map_.score(w_.data(), {i, i + 1}, tables_of_one(layout_, i, own_.data()), scratch_.data());
        if (problem_.cost) problem_.structure->add_cost(i, problem_.truth(i), problem_.cost, 1.0, own_.data());
        return view_of_one(layout_, i, {own_.data(), map_.shared(w_.data())});
    }
    double score_of(std::size_t i, const ScoreView& view, const std::vector<std::int32_t>& labels) {
        problem_.structure->list_parts(i, labels.data(), parts_);
        return problem_.structure->score_parts(i, view, {{parts_.own[0], parts_.own[1], parts_.own[2]}, parts_.shared});
    }
    double cost_of(std::size_t i, const std::vector<std::int32_t>& labels) {
        if (!problem_.cost) return 0.0;
        std::fill_n(difference_.data(), layout_.n_own(i), 0.0);
        add_parts(i, labels, 1.0);
        return problem_.structure->expected_cost(i, problem_.truth(i), problem_.cost, difference_.data());
    }
    // Adds mass at the parts of a labelling to difference_ and shared_difference_.
    void add_parts(std::size_t i, const std::vector<std::int32_t>& labels, double mass) {
        problem_.structure->list_parts(i, labels.data(), parts_);
        double* own = difference_.data();
        for (std::size_t g = 0; g < layout_.tables.size(); ++g) {
            for (std::size_t r = 0; r < parts_.own[g].size(); ++r)
                if (parts_.own[g][r] >= 0)
                    own[r * layout_.tables[g].width + static_cast<std::size_t>(parts_.own[g][r])] += mass;
            own += layout_.tables[g].n_rows(i) * layout_.tables[g].width;
        }
        for (const std::int32_t part : parts_.shared) shared_difference_.data()[part] += mass;
    }
    void clear_difference(std::size_t i) {
        std::fill_n(difference_.data(), layout_.n_own(i), 0.0);
        std::fill_n(shared_difference_.data(), layout_.n_shared, 0.0);
    }
    // w += scale * A_i' difference; returns how much |w|^2 / 2 grows.
    double move(std::size_t i, double scale) {
        const PartSums sums{tables_of_one(layout_, i, difference_.data()), shared_difference_.data()};
        return map_.move(i, sums, scale, w_.data(), scratch_.data());
    }

    double visit(std::size_t i) {
        LabellingMixture& mixture = mixtures_[i];
        double gained = 0.0, first_slope = 0.0;
        for (int round = 0; round < kMostSteps; ++round) {
            const ScoreView view = score(i);
            if (round == 0) {
                labels_.resize(problem_.length(i));
                if (block_->best(i, view, labels_.data()).status != Status::ok)
                    throw std::runtime_error(
                        "The scores of an example are not finite any more: the features are too large.");
                mixture.find(labels_);
            }
            for (MixedLabelling& one : mixture.all()) one.score = score_of(i, view, one.labels);
            const std::size_t better = mixture.best(), worse = mixture.worst();
            const double slope = mixture.all()[better].score - mixture.all()[worse].score;
            if (round == 0) first_slope = slope;
            if (!(slope > std::max(kSolved * first_slope * (round > 0), kNoSlope))) break;
            const double gain = step(i, mixture, better, worse, slope);
            if (!(gain > 0.0)) break;
            gained += gain;
        }
        return gained;
    }

    double step(std::size_t i, LabellingMixture& mixture, std::size_t better, std::size_t worse, double slope) {
        const double weight = problem_.weights[i];
        const double cost = cost_of(i, mixture.all()[better].labels) - cost_of(i, mixture.all()[worse].labels);
        clear_difference(i);
        add_parts(i, mixture.all()[better].labels, 1.0);
        add_parts(i, mixture.all()[worse].labels, -1.0);
        // The whole mass first, which tells the curvature; what is too much goes back.
        const double most = mixture.all()[worse].mass, by = weight * most;
        const double grown = move(i, -by);
        const double square = 2.0 * (grown + by * (slope - cost)) / (by * by);
        double length = most;
        if (square > 0.0 && slope < weight * square * most) {
            length = slope / (weight * square);
            move(i, weight * (most - length));
        }
        mixture.move(worse, better, length);
        return weight * length * (slope - 0.5 * weight * length * square);
    }

    // w and the dual value from the mixtures, without what rounding has left in them: after every pass, so that they
    // depend on the mixtures alone.
    void rebuild() {
        std::fill(w_.begin(), w_.end(), 0.0);
        dual_ = 0.0;
        for (std::size_t i = 0; i < mixtures_.size(); ++i) {
            if (problem_.length(i) == 0 || !(problem_.weights[i] > 0.0)) continue;
            for (const MixedLabelling& one : mixtures_[i].all())
                dual_ += problem_.weights[i] * one.mass * cost_of(i, one.labels);
            clear_difference(i);
            for (const MixedLabelling& one : mixtures_[i].all()) add_parts(i, one.labels, -one.mass);
            const PartSums sums{tables_of_one(layout_, i, difference_.data()), shared_difference_.data()};
            objective_.truth().add(i, 1.0, sums.own, sums.shared);
            move(i, problem_.weights[i]);
        }
        dual_ -= half_square(w_.data());
    }
    double half_square(const double* point) const { return dualfield::half_square({point, w_.size()}); }
    void keep_if_better(const double* point) {
        const double value = half_square(point) + objective_.loss(point);
        if (!(value < primal_)) return;
        primal_ = value;
        std::copy_n(point, best_.size(), best_.data());
    }
    void certify() {
        keep_if_better(w_.data());
        if (n_iterations_ > 0) keep_if_better(mean_.data());
        forecast_.look(gap(), passes_);
    }

    struct Look {
        double primal;
        const double* point;
    };
    std::optional<Outcome> pass_end() {
        if (n_iterations_ == 0 || n_iterations_ == resumed_ || !callbacks_.pass_end) return std::nullopt;
        // Another look, which leaves no trace.
        std::optional<Look> found;
        const auto look = [&]() -> const Look& {
            if (!found) {
                found = Look{primal_, best_.data()};
                for (const double* point : {w_.data(), mean_.data()}) {
                    const double value = half_square(point) + objective_.loss(point);
                    if (value < found->primal) found = Look{value, point};
                }
            }
            return *found;
        };
        const auto now = [&] {
            const double primal = look().primal, scale = std::abs(primal) + std::abs(dual_);
            return Progress{primal, dual_, std::max(primal - dual_, kRounding * scale), passes_, clock_.seconds()};
        };
        const auto parameters = [&] { return std::vector<double>(look().point, look().point + w_.size()); };
        const auto state = [&] {
            StateWriter writer;
            describe(writer);
            std::vector<std::uint64_t> counts, labels;
            std::vector<double> masses;
            for (const LabellingMixture& mixture : mixtures_) {
                counts.push_back(mixture.all().size());
                for (const MixedLabelling& one : mixture.all()) {
                    masses.push_back(one.mass);
                    labels.insert(labels.end(), one.labels.begin(), one.labels.end());
                }
            }
            writer("counts", counts);
            writer("labels", labels);
            writer("masses", masses);
            writer("seconds", clock_.seconds());
            return writer.release();
        };
        return callbacks_.pass_end({now, parameters, state});
    }
    template <class Archive>
    void describe(Archive& archive) {
        archive("mean", mean_);
        archive("best", best_);
        archive.permutation("order", order_);
        archive("primal", primal_);
        archive.at_least("passes", passes_, 0.0);
        archive("n_iterations", n_iterations_);
        archive("next_look", next_look_);
        forecast_.describe(archive);
    }
    void restore(const SolverState& saved) {
        const StateReader reader(saved);
        describe(reader);
        double seconds = 0.0;
        reader("seconds", seconds);
        clock_ = Clock(seconds);
        const auto& counts = reader.find<std::uint64_t>("counts");
        const auto& labels = reader.find<std::uint64_t>("labels");
        const auto& masses = reader.find<double>("masses");
        if (counts.size() != mixtures_.size()) throw StateError("counts has another size");
        std::size_t label = 0, mass = 0;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const std::size_t length = problem_.length(i);
            mixtures_[i].all().clear();
            if (counts[i] == 0 || counts[i] > masses.size() - mass || counts[i] * length > labels.size() - label)
                throw StateError("counts do not fit the labellings");
            for (std::size_t y = 0; y < counts[i]; ++y) {
                MixedLabelling one;
                for (std::size_t t = 0; t < length; ++t) {
                    if (labels[label] >= problem_.structure->n_labels()) throw StateError("labels are out of range");
                    one.labels.push_back(static_cast<std::int32_t>(labels[label++]));
                }
                one.mass = masses[mass++];
                if (!(one.mass > 0.0 && one.mass <= 1.0 + 1e-9)) throw StateError("masses are out of range");
                if (!problem_.structure->refusal(i, one.labels.data()).empty())
                    throw StateError("labels are not allowed");
                mixtures_[i].all().push_back(std::move(one));
            }
        }
        resumed_ = n_iterations_;
        rebuild();
        primal_ = half_square(best_.data()) + objective_.loss(best_.data());
    }

    const Problem& problem_;
    const ScoreMap& map_;
    const PartLayout& layout_;
    const PathBlocksSettings& settings_;
    const Callbacks& callbacks_;
    Objective objective_;
    std::unique_ptr<Block> block_;
    std::vector<LabellingMixture> mixtures_;
    std::vector<std::uint64_t> order_;
    Aligned<double> w_, mean_, best_;
    Buffer own_, difference_, shared_difference_, scratch_;
    std::vector<std::int32_t> labels_;
    PartList parts_;
    GapForecast forecast_;
    Clock clock_;
    double primal_ = kInfinity, dual_ = 0.0, passes_ = 0.0;
    std::uint64_t n_iterations_ = 0, next_look_ = 1, resumed_ = 0;
};

}  // namespace

LinearSolution solve_path_blocks(const Problem& problem, const double* start, const PathBlocksSettings& settings,
                                 const Callbacks& callbacks) {
    if (problem.allowed || problem.temperature != 0.0)
        throw std::invalid_argument("path_blocks needs all labels and T = 0");
    PathBlocks run(problem, settings, callbacks);
    run.begin(start);
    return run.solve();
}

}  // namespace dualfield
