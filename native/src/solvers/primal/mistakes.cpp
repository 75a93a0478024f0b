// Learning from mistakes: passive-aggressive moves, and AROW.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "dualfield/objectives/objective.hpp"
#include "epochs.hpp"

namespace dualfield {
namespace {

// The features of the truth minus those of a prediction: at which places of the weights they differ, and by how much.
class Difference {
  public:
    explicit Difference(const Problem& problem) : problem_(problem), values_(problem.size(), 0.0) {}

    void set(std::size_t example, const std::int32_t* predicted) {
        for (const std::size_t at : places_) values_[at] = 0.0;
        places_.clear();
        const ScoreMap& scores = *problem_.scores;
        const PartLayout& layout = problem_.structure->parts();
        problem_.structure->list_parts(example, problem_.truth(example), truth_);
        problem_.structure->list_parts(example, predicted, predicted_);
        for (std::size_t g = 0; g < layout.tables.size(); ++g)
            for (std::size_t r = 0; scores.table(g).map && r < truth_.own[g].size(); ++r) {
                if (truth_.own[g][r] == predicted_.own[g][r]) continue;
                const std::size_t row = layout.tables[g].feature_row(example) + r;
                add_row(g, row, truth_.own[g][r], 1.0);
                add_row(g, row, predicted_.own[g][r], -1.0);
            }
        for (const std::int32_t part : truth_.shared) add_shared(part, 1.0);
        for (const std::int32_t part : predicted_.shared) add_shared(part, -1.0);
        std::sort(places_.begin(), places_.end());
        places_.erase(std::unique(places_.begin(), places_.end()), places_.end());
    }
    // take(place, value) for each place once.
    template <class Take>
    void each(const Take& take) const {
        for (const std::size_t at : places_) take(at, values_[at]);
    }

  private:
    void add(std::size_t at, double value) {
        values_[at] += value;
        places_.push_back(at);
    }
    void add_shared(std::int32_t part, double factor) {
        const auto at = static_cast<std::size_t>(part);
        if (problem_.scores->shared_mask()[at] > 0.0) add(problem_.scores->shared_begin() + at, factor);
    }
    void add_row(std::size_t g, std::size_t row, std::int32_t part, double factor) {
        if (part < 0) return;
        const FeatureRows& rows = problem_.scores->table(g).rows;
        if (rows.dense) {
            const double* values = rows.dense + row * rows.n_columns;
            for (std::size_t c = 0; c < rows.n_columns; ++c) add_column(g, c, part, factor * values[c]);
            return;
        }
        for (std::int64_t q = rows.indptr[row]; q < rows.indptr[row + 1]; ++q)
            add_column(g, static_cast<std::size_t>(rows.indices[q]), part,
                       rows.values ? factor * rows.values[q] : factor);
    }
    void add_column(std::size_t g, std::size_t column, std::int32_t part, double value) {
        const LinearMap& map = *problem_.scores->table(g).map;
        const std::size_t begin = problem_.scores->table_begin(g), output = static_cast<std::size_t>(part);
        const LinearMap::Place place = map.places()[column];
        if (place.count == LinearMap::kWhole) {
            const std::uint8_t mask = map.masks()[place.start * (map.width() / kLanes) + output / kLanes];
            if (mask >> (output % kLanes) & 1u) add(begin + place.start * map.width() + output, value);
            return;
        }
        const std::int32_t* outputs = map.listed_outputs() + place.start;
        const std::int32_t* found = std::lower_bound(outputs, outputs + place.count, part);
        if (found != outputs + place.count && *found == part)
            add(begin + map.listed_begin() + place.start + static_cast<std::size_t>(found - outputs), value);
    }

    const Problem& problem_;
    std::vector<double> values_;  // zero but at the places
    std::vector<std::size_t> places_;
    PartList truth_, predicted_;
};

// Epochs of predictions with the weights w. `learn(example, difference, inner, n_wrong)` gets every wrong prediction,
// with <w, difference>, and returns the loss; a mean loss below epsilon ends it. `describe` lists the state of the
// rule.
template <class Learn, class Describe, class Parameters>
LinearSolution learn_from_mistakes(const Problem& problem, const std::vector<double>& w, const OnlineSettings& settings,
                                   const Callbacks& callbacks, const Learn& learn, const Describe& describe,
                                   const Parameters& parameters) {
    if (problem.allowed) throw std::invalid_argument("learning from mistakes needs examples with all their labels");
    ChunkScores chunk(problem);
    Difference difference(problem);
    std::vector<std::uint64_t> order = not_empty(problem);
    std::vector<std::int32_t> labels;
    const auto describe_all = [&](auto& archive) {
        archive.permutation("order", order);
        describe(archive);
    };
    Epochs epochs{callbacks};
    epochs.begin(describe_all);
    std::optional<Outcome> outcome;
    while (!outcome && epochs.epoch < settings.n_epochs) {
        shuffle(order, settings.seed, epochs.epoch + 1);
        double loss = 0.0;
        for (std::size_t at = 0; !outcome && at < order.size(); ++at) {
            const std::size_t i = order[at];
            labels.resize(problem.length(i));
            Status status;
            problem.structure->argmax({i, i + 1}, chunk.compute(w.data(), 1.0, {i, i + 1}, true), 1, labels.data(),
                                      &status);
            std::size_t n_wrong = 0;
            for (std::size_t t = 0; t < labels.size(); ++t) n_wrong += labels[t] != problem.truth(i)[t];
            double inner = 0.0;
            if (n_wrong > 0) {
                difference.set(i, labels.data());
                difference.each([&](std::size_t j, double value) { inner += w[j] * value; });
            }
            loss += learn(i, difference, inner, static_cast<double>(n_wrong));
            if (at % 256 == 255 && !epochs.report(loss, static_cast<double>(epochs.epoch)))
                outcome = Outcome::interrupted;
        }
        if (!std::isfinite(loss)) throw std::runtime_error("The weights grow without bound: scale the features down.");
        epochs.latest = loss;
        const bool converged = loss < settings.epsilon * static_cast<double>(order.size());
        if (!outcome) outcome = epochs.end(describe_all, parameters, converged);
    }
    return {.parameters = parameters(),
            .outcome = outcome.value_or(Outcome::iteration_limit),
            .n_iterations = epochs.epoch};
}

// The weights c_i divided by the largest: longer moves than a mistake asks for would go too far.
std::vector<double> shares_of(const Problem& problem) {
    std::vector<double> shares(problem.weights, problem.weights + problem.n_examples());
    double largest = 0.0;
    for (const double weight : shares) largest = std::max(largest, weight);
    for (double& weight : shares) weight = largest > 0.0 ? weight / largest : 0.0;
    return shares;
}

std::vector<double> begun(const Problem& problem, const double* start) {
    return start ? std::vector<double>(start, start + problem.size()) : std::vector<double>(problem.size(), 0.0);
}

}  // namespace

LinearSolution solve_passive_aggressive(const Problem& problem, const double* start,
                                        const PassiveAggressiveSettings& settings, const Callbacks& callbacks) {
    std::vector<double> w = begun(problem, start), sum(problem.size(), 0.0);
    const std::vector<double> shares = shares_of(problem);
    double steps = 1.0;
    const auto length = [&](double loss, double square) {
        if (settings.type == 2) return loss / (square + 0.5 / settings.c);
        return settings.type == 1 ? std::min(settings.c, loss / square) : loss / square;
    };
    const auto learn = [&](std::size_t i, const Difference& difference, double inner, double n_wrong) {
        const double now = steps++;
        if (n_wrong == 0.0) return 0.0;
        const double loss = (settings.error_sensitive ? std::sqrt(n_wrong) : 1.0) - inner;
        double square = 0.0;
        difference.each([&](std::size_t, double value) { square += value * value; });
        if (!(loss > 0.0)) return 0.0;
        const double step = square > 0.0 ? shares[i] * length(loss, square) : 0.0;
        difference.each([&](std::size_t j, double value) {
            w[j] += step * value;
            sum[j] += now * step * value;
        });
        return shares[i] * loss;
    };
    const auto describe = [&](auto& archive) {
        archive("w", w);
        archive("sum", sum);
        archive.at_least("steps", steps, 1.0);
    };
    // The mean of all values that w had: what was added at step s counts for the steps after it.
    const auto parameters = [&] {
        std::vector<double> mean = w;
        if (settings.average)
            for (std::size_t j = 0; j < w.size(); ++j) mean[j] -= sum[j] / steps;
        return mean;
    };
    return learn_from_mistakes(problem, w, settings, callbacks, learn, describe, parameters);
}

LinearSolution solve_arow(const Problem& problem, const double* start, const ArowSettings& settings,
                          const Callbacks& callbacks) {
    std::vector<double> w = begun(problem, start), variance(problem.size(), settings.variance);
    const std::vector<double> shares = shares_of(problem);
    const auto learn = [&](std::size_t i, const Difference& difference, double inner, double n_wrong) {
        const double loss = n_wrong - inner;
        if (n_wrong == 0.0 || !(loss > 0.0)) return 0.0;
        double total = settings.gamma;
        difference.each([&](std::size_t j, double value) { total += value * value * variance[j]; });
        const double step = shares[i] * loss / total;
        difference.each([&](std::size_t j, double value) {
            w[j] += step * variance[j] * value;
            variance[j] = 1.0 / (1.0 / variance[j] + value * value / settings.gamma);
        });
        return shares[i] * loss;
    };
    const auto describe = [&](auto& archive) {
        archive("w", w);
        archive("variance", variance);
    };
    return learn_from_mistakes(problem, w, settings, callbacks, learn, describe, [&] { return w; });
}

}  // namespace dualfield
