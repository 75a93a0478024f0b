// Stochastic gradients with averaging, and the averaged perceptron.
#include "dualfield/solvers/primal/online.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "dualfield/core/memory.hpp"
#include "dualfield/vector/routines.hpp"
#include "epochs.hpp"

namespace dualfield {
namespace {

// A vector that shrinks a little at each step and gets a sparse addition, and the mean of all its values, both in time
// proportional to the addition: vector = scale v, mean = a u + b v (Xu 2011).
class AveragedVector {
  public:
    AveragedVector(const double* start, std::size_t size) : v_(size, 0.0), u_(size, 0.0) {
        if (start) std::copy_n(start, size, v_.data());
    }
    const double* unscaled() const { return v_.data(); }
    double scale() const { return scale_; }

    void shrink(double factor) {
        scale_ *= factor;
        if (scale_ < 1e-9) {
            for (double& value : v_) value *= scale_;
            b_ /= scale_;
            scale_ = 1.0;
        }
    }
    // Where factor * gradient is to be added so that the vector changes by it and the mean does not.
    void targets(double factor, GradientTarget (&out)[2]) {
        out[0] = {v_.data(), factor / scale_};
        out[1] = {u_.data(), count_ > 0 ? -b_ / a_ * factor / scale_ : 0.0};
    }
    std::size_t n_targets() const { return count_ > 0 ? 2 : 1; }
    // The vector as it is now enters the mean.
    void take_in() {
        const double share = 1.0 / static_cast<double>(++count_);
        if (count_ == 1) {
            a_ = 1.0;
            b_ = scale_;
            return;
        }
        a_ *= 1.0 - share;
        b_ = (1.0 - share) * b_ + share * scale_;
        if (a_ < 1e-9) {
            for (double& value : u_) value *= a_;
            a_ = 1.0;
        }
    }
    std::vector<double> value(bool mean) const {
        std::vector<double> out(v_.size());
        for (std::size_t j = 0; j < out.size(); ++j)
            out[j] = mean && count_ > 0 ? a_ * u_[j] + b_ * v_[j] : scale_ * v_[j];
        return out;
    }

    template <class Archive>
    void describe(Archive& archive) {
        archive("v", v_);
        archive("u", u_);
        archive.at_least("scale", scale_, 1e-300);
        archive.at_least("a", a_, 1e-300);
        archive("b", b_);
        archive("count", count_);
    }

  private:
    Aligned<double> v_, u_;
    double scale_ = 1.0, a_ = 1.0, b_ = 0.0;
    std::uint64_t count_ = 0;
};

class Sgd {
  public:
    explicit Sgd(const Problem& problem)
        : problem_(problem), objective_(problem, 1), worker_(objective_.worker()), order_(not_empty(problem)) {
        double sum = 0.0;
        for (const std::size_t i : order_) sum += problem.weights[i];
        // The objective divided by the sum of the weights: lambda/2 |w|^2 + mean loss.
        lambda_ = mean_lambda_ = 1.0 / std::max(sum, 1e-300);
    }

    LinearSolution solve(const double* start, const SgdSettings& settings, const Callbacks& callbacks) {
        const auto seen = static_cast<double>(settings.n_seen), n = static_cast<double>(order_.size());
        lambda_ = mean_lambda_ / (1.0 + seen / std::max(n, 1.0));
        AveragedVector w(start, problem_.size());
        double t = seen, rate = settings.rate;
        const auto describe = [&](auto& archive) {
            w.describe(archive);
            archive.permutation("order", order_);
            archive.at_least("t", t, 0.0);
            archive.at_least("rate", rate, 0.0);
        };
        const auto parameters = [&] { return w.value(settings.average); };
        Epochs epochs{callbacks};
        epochs.begin(describe);
        if (!(rate > 0.0)) rate = choose_rate(start);
        std::optional<Outcome> outcome;
        while (!outcome && epochs.epoch < settings.n_epochs) {
            shuffle(order_, settings.seed, epochs.epoch + 1);
            // Early points would only pull the mean back.
            const bool average = settings.average && 2 * (epochs.epoch + 1) > settings.n_epochs;
            double loss = 0.0;
            for (std::size_t at = 0; !outcome && at < order_.size(); ++at) {
                loss += step(w, order_[at], rate, t++);
                if (average) w.take_in();
                if (at % 256 == 255 && !epochs.report(loss, passes(epochs.epoch, at))) outcome = Outcome::interrupted;
            }
            if (!std::isfinite(loss)) throw std::runtime_error("The steps are too long: lower the rate.");
            epochs.latest = loss;
            if (!outcome) outcome = epochs.end(describe, parameters);
        }
        return {.parameters = parameters(),
                .outcome = outcome.value_or(Outcome::iteration_limit),
                .n_iterations = epochs.epoch};
    }

  private:
    double passes(std::size_t epoch, std::size_t at) const {
        return static_cast<double>(epoch) + static_cast<double>(at + 1) / static_cast<double>(order_.size());
    }
    // Returns the loss before the step.
    double step(AveragedVector& w, std::size_t i, double rate, double t) {
        const double length = rate / (1.0 + rate * lambda_ * t);
        w.shrink(1.0 - length * lambda_);
        GradientTarget targets[2];
        // The weights of the examples are those of the sum: here they must have the mean one.
        w.targets(-length * static_cast<double>(order_.size()) * mean_lambda_, targets);
        return objective_.add(worker_, w.unscaled(), w.scale(), {i, i + 1}, {targets, w.n_targets()});
    }

    // Doubles or halves the rate as long as that lowers the loss of one pass over some of the examples (Bottou).
    double choose_rate(const double* start) {
        const std::size_t n = std::min<std::size_t>(order_.size(), 500);
        const auto trial = [&](double rate) {
            AveragedVector w(start, problem_.size());
            double loss = 0.0;
            for (std::size_t at = 0; at < n; ++at) step(w, order_[at], rate, static_cast<double>(at));
            const std::vector<double> point = w.value(false);
            for (std::size_t at = 0; at < n; ++at)
                loss += objective_.add(worker_, point.data(), 1.0, {order_[at], order_[at] + 1}, {});
            return std::isfinite(loss) ? loss : kInfinity;
        };
        double best = 0.1, lowest = trial(best);
        for (const double factor : {2.0, 0.5}) {
            double rate = best * factor;
            for (int i = 0; i < 8; ++i, rate *= factor) {
                const double loss = trial(rate);
                if (!(loss < lowest)) break;
                lowest = loss;
                best = rate;
            }
        }
        return best;
    }

    const Problem& problem_;
    Objective objective_;
    Objective::Worker worker_;
    std::vector<std::uint64_t> order_;
    double lambda_, mean_lambda_;
};

}  // namespace

LinearSolution solve_sgd(const Problem& problem, const double* start, const SgdSettings& settings,
                         const Callbacks& callbacks) {
    return Sgd(problem).solve(start, settings, callbacks);
}

LinearSolution solve_perceptron(const Problem& problem, const double* start, const PerceptronSettings& settings,
                                const Callbacks& callbacks) {
    if (problem.allowed) throw std::invalid_argument("the perceptron needs examples with all their labels");
    const Objective objective(problem, 1);
    Objective::Worker worker = objective.worker();
    std::vector<std::uint64_t> order = not_empty(problem);
    std::vector<double> w(problem.size(), 0.0), sum(problem.size(), 0.0);
    if (start) std::copy_n(start, w.size(), w.begin());
    std::vector<std::int32_t> labels;
    double steps = 1.0;
    const auto describe = [&](auto& archive) {
        archive("w", w);
        archive("sum", sum);
        archive.permutation("order", order);
        archive.at_least("steps", steps, 1.0);
    };
    // The mean of all values that w had: what was added at step s counts for the steps after it.
    const auto parameters = [&] {
        std::vector<double> mean = w;
        if (settings.average)
            for (std::size_t j = 0; j < w.size(); ++j) mean[j] -= sum[j] / steps;
        return mean;
    };
    Epochs epochs{callbacks};
    epochs.begin(describe);
    std::optional<Outcome> outcome;
    while (!outcome && epochs.epoch < settings.n_epochs) {
        shuffle(order, settings.seed, epochs.epoch + 1);
        double mistakes = 0.0;
        for (std::size_t at = 0; !outcome && at < order.size(); ++at, steps += 1.0) {
            const std::size_t i = order[at];
            labels.resize(problem.length(i));
            Status status;
            problem.structure->argmax({i, i + 1}, worker.chunk.compute(w.data(), 1.0, {i, i + 1}, true), 1,
                                      labels.data(), &status);
            if (!std::equal(labels.begin(), labels.end(), problem.truth(i))) {
                mistakes += 1.0;
                const GradientTarget targets[2] = {{w.data(), -1.0}, {sum.data(), -steps}};
                objective.add_difference(worker, i, labels.data(), {targets, settings.average ? 2u : 1u});
            }
            if (at % 256 == 255 && !epochs.report(mistakes, static_cast<double>(epochs.epoch)))
                outcome = Outcome::interrupted;
        }
        epochs.latest = mistakes;
        if (!outcome) outcome = epochs.end(describe, parameters, mistakes == 0.0);
    }
    return {.parameters = parameters(),
            .outcome = outcome.value_or(Outcome::iteration_limit),
            .n_iterations = epochs.epoch};
}

}  // namespace dualfield
