// Stochastic gradients with averaging, and the averaged perceptron.
#include "dualfield/online.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "dualfield/memory.hpp"
#include "dualfield/random.hpp"
#include "dualfield/routines.hpp"

namespace dualfield {
namespace {

void shuffle(std::vector<std::size_t>& order, std::uint64_t seed, std::size_t epoch) {
    RandomStream random(seed, epoch);
    for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.next() % left]);
}

std::vector<std::size_t> not_empty(const ChainData& data) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < data.n_examples(); ++i)
        if (data.length(i) > 0) order.push_back(i);
    return order;
}

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

  private:
    Aligned<double> v_, u_;
    double scale_ = 1.0, a_ = 1.0, b_ = 0.0;
    std::size_t count_ = 0;
};

class Sgd {
  public:
    Sgd(const ChainModel& model, const ChainData& data)
        : model_(model), objective_(model, data, 1), worker_(objective_.worker()), order_(not_empty(data)) {
        double sum = 0.0;
        for (const std::size_t i : order_) sum += data.weights[i];
        // The objective divided by the sum of the weights: lambda/2 |w|^2 + mean loss.
        lambda_ = mean_lambda_ = 1.0 / std::max(sum, 1e-300);
    }

    LinearSolution solve(const double* start, const SgdSettings& settings, const Report& report) {
        const auto seen = static_cast<double>(settings.n_seen), n = static_cast<double>(order_.size());
        lambda_ = mean_lambda_ / (1.0 + seen / std::max(n, 1.0));
        const double rate = settings.rate > 0.0 ? settings.rate : choose_rate(start);
        AveragedVector w(start, model_.size());
        const Clock clock(0.0);
        LinearSolution solution;
        double t = seen;
        for (std::size_t epoch = 1; epoch <= settings.n_epochs; ++epoch) {
            shuffle(order_, settings.seed, epoch);
            // Early points would only pull the mean back.
            const bool average = settings.average && 2 * epoch > settings.n_epochs;
            double loss = 0.0;
            for (std::size_t at = 0; at < order_.size(); ++at) {
                loss += step(w, order_[at], rate, t++);
                if (average) w.take_in();
                if (at % 256 == 255 && !report({loss, 0.0, kInfinity, passes(epoch, at), clock.seconds()}))
                    return stopped(solution, w, settings.average);
            }
            ++solution.n_iterations;
            if (!std::isfinite(loss)) throw std::runtime_error("The steps are too long: lower the rate.");
            if (!report({loss, 0.0, kInfinity, static_cast<double>(epoch), clock.seconds()}))
                return stopped(solution, w, settings.average);
        }
        solution.parameters = w.value(settings.average);
        return solution;
    }

  private:
    double passes(std::size_t epoch, std::size_t at) const {
        return static_cast<double>(epoch - 1) + static_cast<double>(at + 1) / static_cast<double>(order_.size());
    }
    static LinearSolution stopped(LinearSolution solution, const AveragedVector& w, bool average) {
        solution.outcome = Outcome::interrupted;
        solution.parameters = w.value(average);
        return solution;
    }

    // Returns the loss before the step.
    double step(AveragedVector& w, std::size_t i, double rate, double t) {
        const double length = rate / (1.0 + rate * lambda_ * t);
        w.shrink(1.0 - length * lambda_);
        GradientTarget targets[2];
        // The weights of the examples are those of the sum: here they must have the mean one.
        w.targets(-length * static_cast<double>(order_.size()) * mean_lambda_, targets);
        return objective_.add(worker_, w.unscaled(), w.scale(), i, i + 1, {targets, w.n_targets()});
    }

    // Doubles or halves the rate as long as that lowers the loss of one pass over some of the examples (Bottou).
    double choose_rate(const double* start) {
        const std::size_t n = std::min<std::size_t>(order_.size(), 500);
        const auto trial = [&](double rate) {
            AveragedVector w(start, model_.size());
            double loss = 0.0;
            for (std::size_t at = 0; at < n; ++at) step(w, order_[at], rate, static_cast<double>(at));
            const std::vector<double> point = w.value(false);
            for (std::size_t at = 0; at < n; ++at)
                loss += objective_.add(worker_, point.data(), 1.0, order_[at], order_[at] + 1, {});
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

    const ChainModel& model_;
    ChainObjective objective_;
    ChainObjective::Worker worker_;
    std::vector<std::size_t> order_;
    double lambda_, mean_lambda_;
};

}  // namespace

LinearSolution solve_sgd(const ChainModel& model, const ChainData& data, const double* start,
                         const SgdSettings& settings, const Report& report) {
    return Sgd(model, data).solve(start, settings, report);
}

LinearSolution solve_perceptron(const ChainModel& model, const ChainData& data, const double* start,
                                const PerceptronSettings& settings, const Report& report) {
    if (data.allowed) throw std::invalid_argument("the perceptron needs examples with all their labels");
    const ChainObjective objective(model, data, 1);
    ChainObjective::Worker worker = objective.worker();
    std::vector<std::size_t> order = not_empty(data);
    std::vector<double> w(model.size(), 0.0), sum(model.size(), 0.0);
    if (start) std::copy_n(start, w.size(), w.begin());
    std::vector<std::int32_t> labels;
    const Clock clock(0.0);
    LinearSolution solution;
    double steps = 1.0;
    bool go_on = true;
    for (std::size_t epoch = 1; go_on && epoch <= settings.n_epochs; ++epoch) {
        shuffle(order, settings.seed, epoch);
        double mistakes = 0.0;
        for (std::size_t at = 0; go_on && at < order.size(); ++at, steps += 1.0) {
            const std::size_t i = order[at], row = data.first(i);
            labels.resize(data.length(i));
            const ChainScores& scores = worker.chunk.compute(w.data(), 1.0, i, i + 1, true);
            ChainOracle(*model.topology, scores, 1).argmax(labels.data());
            if (!std::equal(labels.begin(), labels.end(), data.labels + row)) {
                mistakes += 1.0;
                const GradientTarget targets[2] = {{w.data(), -1.0}, {sum.data(), -steps}};
                objective.add_difference(worker, i, labels.data(), {targets, settings.average ? 2u : 1u});
            }
            if (at % 256 == 255)
                go_on = report({mistakes, 0.0, kInfinity, static_cast<double>(epoch - 1), clock.seconds()});
        }
        ++solution.n_iterations;
        go_on = go_on && report({mistakes, 0.0, kInfinity, static_cast<double>(epoch), clock.seconds()});
        if (mistakes == 0.0) {
            solution.outcome = Outcome::converged;
            break;
        }
    }
    if (!go_on) solution.outcome = Outcome::interrupted;
    // The mean of all values that w had: what was added at step s counts for the steps after it.
    if (settings.average)
        for (std::size_t j = 0; j < w.size(); ++j) w[j] -= sum[j] / steps;
    solution.parameters = std::move(w);
    return solution;
}

}  // namespace dualfield
