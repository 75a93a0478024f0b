// Losses of problems with linear scores: gradients by finite differences, threads, and solvers that certify themselves.
#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "dualfield/core/memory.hpp"
#include "dualfield/objectives/objective.hpp"
#include "dualfield/solvers/dual/block_dual.hpp"
#include "dualfield/solvers/dual/flow_swap.hpp"
#include "dualfield/solvers/primal/online.hpp"
#include "dualfield/structures/chains/chain.hpp"
#include "dualfield/vector/routines.hpp"

using namespace dualfield;

namespace {

constexpr std::size_t kColumns = 5;

std::vector<std::int32_t> all_pairs(std::int32_t n) {
    std::vector<std::int32_t> out;
    for (std::int32_t a = 0; a < n; ++a)
        for (std::int32_t b = 0; b < n; ++b) out.insert(out.end(), {a, b});
    return out;
}

LinearMap everything(std::size_t n_columns, std::size_t n_outputs) {
    std::vector<std::int64_t> indptr;
    std::vector<std::int32_t> outputs;
    for (std::size_t c = 0; c <= n_columns; ++c) indptr.push_back(static_cast<std::int64_t>(c * n_outputs));
    for (std::size_t i = 0; i < n_columns * n_outputs; ++i) outputs.push_back(static_cast<std::int32_t>(i % n_outputs));
    return {n_outputs, indptr, outputs};
}

struct Options {
    bool pair = false, ends = false, partial = false, cost = false;
    double temperature = 1.0;
    std::size_t n_examples = 30;
};

struct Drawn {
    std::size_t n_labels;
    std::vector<std::int32_t> windows, labels;
    std::vector<std::uint8_t> windows_allowed, allowed;
    ChainTopology topology;
    LinearMap node, pair;
    std::vector<double> mask, dense, weights, cost;
    std::vector<std::int64_t> offsets{0};
    std::optional<ChainStructure> structure;
    std::optional<ScoreMap> scores;
    Problem problem;

    Drawn(std::size_t n, const Options& options, unsigned seed)
        : n_labels(n),
          windows(all_pairs(static_cast<std::int32_t>(n))),
          windows_allowed(n * n, 1),
          topology(n, 1, windows, windows_allowed),
          node(everything(kColumns, n)),
          pair(everything(kColumns, n * n)),
          mask(n * n, 1.0) {
        std::mt19937 generator(seed);
        std::normal_distribution<double> normal;
        for (std::size_t i = 0; i < options.n_examples; ++i)
            offsets.push_back(offsets.back() + static_cast<std::int64_t>(generator() % 6));
        const auto n_nodes = static_cast<std::size_t>(offsets.back());
        for (std::size_t t = 0; t < n_nodes; ++t) labels.push_back(static_cast<std::int32_t>(generator() % n));
        for (std::size_t j = 0; j < n_nodes * kColumns; ++j) dense.push_back(normal(generator));
        for (std::size_t i = 0; i < options.n_examples; ++i) weights.push_back(0.1 + std::abs(normal(generator)));
        for (std::size_t j = 0; j < n_nodes * n; ++j) allowed.push_back(generator() % 2);
        for (std::size_t t = 0; t < n_nodes; ++t) allowed[t * n + static_cast<std::size_t>(labels[t])] = 1;
        for (std::size_t j = 0; j < n * n; ++j) cost.push_back(j % (n + 1) == 0 ? 0.0 : std::abs(normal(generator)));
        const FeatureRows rows{nullptr, nullptr, nullptr, dense.data(), kColumns};
        structure.emplace(topology, offsets,
                          ChainStructure::Options{.with_edges = options.pair, .with_ends = options.ends});
        mask.resize(structure->parts().n_shared, 1.0);
        std::vector<ScoreMap::Table> tables{{&node, rows}};
        if (options.pair) tables.push_back({&pair, rows});
        scores.emplace(structure->parts(), tables, mask.data());
        problem = {.structure = &*structure,
                   .scores = &*scores,
                   .labels = labels.data(),
                   .weights = weights.data(),
                   .cost = options.cost ? cost.data() : nullptr,
                   .allowed = options.partial ? allowed.data() : nullptr,
                   .temperature = options.temperature};
    }
    Drawn(const Drawn&) = delete;
    Drawn& operator=(const Drawn&) = delete;

    // Random parameters; the padding of whole rows stays zero.
    Aligned<double> parameters(unsigned seed) const {
        std::mt19937 generator(seed);
        std::normal_distribution<double> normal(0.0, 0.5);
        Aligned<double> w(scores->size(), 0.0);
        const auto fill = [&](const LinearMap& map, std::size_t begin) {
            std::vector<std::int64_t> places(map.n_features());
            map.feature_places(places.data());
            for (const std::int64_t place : places) w[begin + static_cast<std::size_t>(place)] = normal(generator);
        };
        fill(node, 0);
        if (structure->with_edges()) fill(pair, scores->table_begin(1));
        for (std::size_t j = scores->shared_begin(); j < scores->size(); ++j) w[j] = normal(generator);
        return w;
    }
};

const std::vector<Options>& variants() {
    static const std::vector<Options> all{{},
                                          {.ends = true, .cost = true, .temperature = 0.5},
                                          {.pair = true, .ends = true},
                                          {.partial = true, .temperature = 2.0},
                                          {.pair = true, .partial = true}};
    return all;
}

template <class Body>
void for_each_set(Body body) {
    const char* before = routines().name;
    for (const Routines& set : all_routines())
        if (use_routines(set.name)) body();
    CHECK(use_routines(before));
}

const Report kSilent = [](const Progress&) { return true; };

}  // namespace

TEST(gradients_of_chains_by_finite_differences) {
    for_each_set([] {
        unsigned seed = 0;
        for (const std::size_t n_labels : {1u, 3u, 5u})
            for (const Options& options : variants()) {
                const Drawn p(n_labels, options, ++seed);
                Objective objective(p.problem, 1);
                Aligned<double> w = p.parameters(1), gradient(p.problem.size());
                const Aligned<double> step = p.parameters(2);
                const double loss = objective.loss_and_gradient(w.data(), gradient.data());
                CHECK_NEAR(loss, objective.loss(w.data()), 1e-10 * std::max(1.0, std::abs(loss)));
                double slope = 0.0;
                for (std::size_t j = 0; j < step.size(); ++j) slope += gradient[j] * step[j];
                const auto at = [&](double length) {
                    Aligned<double> moved(w.size());
                    for (std::size_t j = 0; j < w.size(); ++j) moved[j] = w[j] + length * step[j];
                    return objective.loss(moved.data());
                };
                CHECK_NEAR((at(1e-5) - at(-1e-5)) / 2e-5, slope, 1e-5 * std::max(1.0, std::abs(slope)));
            }
    });
}

TEST(chain_losses_do_not_depend_on_threads) {
    for (Options options : variants()) {
        options.n_examples = 900;
        const Drawn p(3, options, 5);
        const Aligned<double> w = p.parameters(3);
        Aligned<double> one(p.problem.size()), more(p.problem.size());
        Objective serial(p.problem, 1);
        const double loss = serial.loss_and_gradient(w.data(), one.data());
        for (const std::size_t n_threads : {2u, 5u}) {
            Objective parallel(p.problem, n_threads);
            CHECK(parallel.loss_and_gradient(w.data(), more.data()) == loss);
            CHECK(std::equal(one.begin(), one.end(), more.begin()));
            CHECK(parallel.loss(w.data()) == serial.loss(w.data()));
        }
    }
}

TEST(block_dual_certifies_its_minimum) {
    for_each_set([] {
        unsigned seed = 0;
        for (const std::size_t n_labels : {1u, 2u, 4u, 7u})
            for (const Options& options : {variants()[0], variants()[1], variants()[2]}) {
                const Drawn p(n_labels, options, ++seed);
                const BlockDualSettings settings{.tolerance = 1e-8, .most_passes = 3000.0, .seed = seed};
                double dual = -kInfinity;
                const LinearSolution solution =
                    solve_block_dual(p.problem, nullptr, settings, {[&](const Progress& now) {
                                         CHECK(now.dual >= dual - 1e-9 * std::abs(dual));
                                         dual = now.dual;
                                         return true;
                                     }});
                if (n_labels > 1) CHECK(solution.outcome == Outcome::converged);
                // Half the squared norm of the gradient is another bound: it must be small, too.
                Objective objective(p.problem, 1);
                Aligned<double> w(p.problem.size()), gradient(p.problem.size());
                std::copy(solution.parameters.begin(), solution.parameters.end(), w.begin());
                double value = objective.loss_and_gradient(w.data(), gradient.data()), bound = 0.0;
                for (std::size_t j = 0; j < w.size(); ++j) {
                    value += 0.5 * w[j] * w[j];
                    bound += 0.5 * (w[j] + gradient[j]) * (w[j] + gradient[j]);
                }
                CHECK_NEAR(solution.objective, value, 1e-9 * std::max(1.0, value));
                CHECK(solution.gap <= 1e-8 * std::max(value, 1e-300) && bound <= 1e-4 * value + 1e-12);
            }
    });
}

TEST(online_solvers_lower_the_loss) {
    for (const Options& options : variants()) {
        const Drawn p(3, options, 9);
        Objective objective(p.problem, 1);
        const Aligned<double> zero(p.problem.size(), 0.0);
        const auto value = [&](const std::vector<double>& parameters) {
            double sum = objective.loss(parameters.data());
            for (const double x : parameters) sum += 0.5 * x * x;
            return sum;
        };
        for (const bool average : {false, true}) {
            const SgdSettings settings{.n_epochs = 30, .average = average, .seed = 1};
            CHECK(value(solve_sgd(p.problem, nullptr, settings, {kSilent}).parameters) < objective.loss(zero.data()));
        }
        if (options.partial) {
            CHECK_THROWS(solve_perceptron(p.problem, nullptr, {}, {kSilent}), std::invalid_argument);
            CHECK_THROWS(solve_passive_aggressive(p.problem, nullptr, {}, {kSilent}), std::invalid_argument);
            CHECK_THROWS(solve_arow(p.problem, nullptr, {}, {kSilent}), std::invalid_argument);
            continue;
        }
        const LinearSolution found = solve_perceptron(p.problem, nullptr, {.n_epochs = 20}, {kSilent});
        CHECK(found.parameters.size() == p.problem.size());
        CHECK(std::all_of(found.parameters.begin(), found.parameters.end(), [](double x) { return std::isfinite(x); }));
    }
}

TEST(solvers_stop_when_told) {
    const Drawn p(3, {.n_examples = 600}, 11);
    int calls = 0;
    const Report twice = [&](const Progress&) { return ++calls % 2 != 0; };
    CHECK(solve_block_dual(p.problem, nullptr, {.tolerance = 1e-15}, {twice}).outcome == Outcome::interrupted);
    calls = 0;
    CHECK(solve_sgd(p.problem, nullptr, {}, {twice}).outcome == Outcome::interrupted);
    calls = 0;
    CHECK(solve_perceptron(p.problem, nullptr, {}, {twice}).outcome == Outcome::interrupted);
    calls = 0;
    CHECK(solve_passive_aggressive(p.problem, nullptr, {}, {twice}).outcome == Outcome::interrupted);
    calls = 0;
    CHECK(solve_arow(p.problem, nullptr, {}, {twice}).outcome == Outcome::interrupted);
}

// Stops after some passes, and goes on from the state it had then.
template <class Solve>
void check_resumed(const Solve& solve, std::initializer_list<int> stops = {1, 2, 5}) {
    const LinearSolution whole = solve(Callbacks{kSilent});
    for (const int n_passes : stops) {
        int passes = 0;
        SolverState state;
        const auto stop = [&](const Moment& moment) -> std::optional<Outcome> {
            if (++passes < n_passes) return std::nullopt;
            state = moment.state();
            CHECK(moment.parameters().size() == whole.parameters.size() && moment.progress().passes > 0.0);
            return Outcome::stopped;
        };
        CHECK(solve(Callbacks{kSilent, stop}).outcome == Outcome::stopped);
        const LinearSolution rest = solve(Callbacks{kSilent, {}, &state});
        CHECK(rest.parameters == whole.parameters && rest.n_iterations == whole.n_iterations);
        CHECK(rest.outcome == whole.outcome && rest.gap == whole.gap);
        state.erase("order");
        CHECK_THROWS(solve(Callbacks{kSilent, {}, &state}), std::invalid_argument);
    }
}

TEST(solvers_go_on_where_they_were) {
    const Drawn p(3, {.n_examples = 100}, 17);
    for (const double tolerance : {1e-5, 1e-8})
        check_resumed([&](const Callbacks& callbacks) {
            return solve_block_dual(p.problem, nullptr, {.tolerance = tolerance}, callbacks);
        });
    check_resumed(
        [&](const Callbacks& callbacks) { return solve_sgd(p.problem, nullptr, {.n_epochs = 12}, callbacks); });
    check_resumed(
        [&](const Callbacks& callbacks) { return solve_perceptron(p.problem, nullptr, {.n_epochs = 12}, callbacks); });
    check_resumed(
        [&](const Callbacks& callbacks) { return solve_passive_aggressive(p.problem, nullptr, {{12}}, callbacks); });
    check_resumed([&](const Callbacks& callbacks) { return solve_arow(p.problem, nullptr, {{12}}, callbacks); });
}

// After one move for one example the truth has its margin over what was predicted, if moves are as long as they must
// be.
TEST(a_passive_aggressive_move_gives_the_margin) {
    for (const Options& options : variants()) {
        if (options.partial || options.cost) continue;
        Options one = options;
        one.n_examples = 1;
        const Drawn p(3, one, 13);
        std::vector<std::int32_t> predicted(p.problem.n_nodes());
        const Aligned<double> zero(p.problem.size(), 0.0);
        tag(p.problem, zero.data(), 1, false, predicted.data());
        std::size_t n_wrong = 0;
        for (std::size_t t = 0; t < predicted.size(); ++t) n_wrong += predicted[t] != p.problem.labels[t];
        if (n_wrong == 0) continue;
        PassiveAggressiveSettings settings{{1}, 0};
        settings.average = false;
        const std::vector<double> w = solve_passive_aggressive(p.problem, nullptr, settings, {kSilent}).parameters;
        ChunkScores chunk(p.problem);
        ScoreView view = chunk.compute(w.data(), 1.0, {0, 1}, false);
        view.inverse_temperature = 1.0;
        double truth = 0.0, other = 0.0;
        Status status;
        p.problem.structure->score({0, 1}, view, 1, p.problem.labels, &truth, &status);
        p.problem.structure->score({0, 1}, view, 1, predicted.data(), &other, &status);
        CHECK_NEAR(truth - other, std::sqrt(static_cast<double>(n_wrong)), 1e-9);
    }
}

TEST(flow_swap_certifies_its_minimum) {
    for_each_set([] {
        unsigned seed = 30;
        for (const std::size_t n_labels : {1u, 2u, 4u, 7u})
            for (Options options : {variants()[0], variants()[1]}) {
                Drawn p(n_labels, options, ++seed);
                p.problem.temperature = 0.0;
                SolverState flow;
                const auto solve = [&](const Callbacks& callbacks) {
                    return solve_flow_swap(p.problem, nullptr, nullptr, {.tolerance = 1e-6}, callbacks, &flow);
                };
                const LinearSolution solution = solve({kSilent});
                CHECK(solution.outcome == Outcome::converged);
                Objective objective(p.problem, 1);
                Aligned<double> w(p.problem.size()), gradient(p.problem.size());
                std::copy(solution.parameters.begin(), solution.parameters.end(), w.begin());
                const double losses = objective.loss_and_gradient(w.data(), gradient.data());
                double value = losses;
                for (const double x : w) value += 0.5 * x * x;
                CHECK_NEAR(solution.objective, value, 1e-9 * std::max(1.0, value));
                CHECK_NEAR(objective.loss(w.data()), losses, 1e-9 * std::max(1.0, losses));
                // The dual of another run from the same flow is as good.
                const LinearSolution again = solve_flow_swap(p.problem, solution.parameters.data(), &flow,
                                                             {.tolerance = 1e-6}, {kSilent}, nullptr);
                CHECK(std::abs(again.objective - solution.objective) <= 2e-6 * std::max(1.0, value));
            }
    });
}

TEST(flow_swap_goes_on_where_it_was) {
    Drawn p(3, {.n_examples = 100}, 17);
    p.problem.temperature = 0.0;
    const auto solve = [&](const Callbacks& callbacks) {
        return solve_flow_swap(p.problem, nullptr, nullptr, {.tolerance = 1e-9}, callbacks, nullptr);
    };
    check_resumed(solve, {1, 2});
    CHECK_THROWS(solve_block_dual(p.problem, nullptr, {}, {kSilent}), std::invalid_argument);
}

TEST(tags_are_the_best_labels) {
    const Drawn p(4, {.pair = true, .ends = true, .n_examples = 300}, 13);
    const Aligned<double> w = p.parameters(4);
    std::vector<std::int32_t> one(p.problem.n_nodes()), two(one.size());
    tag(p.problem, w.data(), 1, false, one.data());
    tag(p.problem, w.data(), 3, false, two.data());
    CHECK(one == two);
    // With the tags as the truth no labelling scores more: at a low temperature the loss is next to nothing.
    Problem told = p.problem;
    told.labels = one.data();
    told.temperature = 1e-7;
    CHECK(Objective(told, 1).loss(w.data()) <= 1e-3);
}
