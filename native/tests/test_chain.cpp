// Chains against enumeration in plain C++: what a build without Python can check, and what the sanitizers watch.
#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "dualfield/core/parallel.hpp"
#include "dualfield/structures/chains/chain.hpp"
#include "dualfield/structures/chains/chain_queries.hpp"
#include "dualfield/structures/single.hpp"
#include "dualfield/vector/routines.hpp"

using namespace dualfield;

namespace {

// Windows of order + 1 labels, all of them, with -1 before the first node; sorted.
std::vector<std::int32_t> all_cliques(std::int32_t n_labels, std::size_t order) {
    std::vector<std::int32_t> out, window(order + 1);
    const std::function<void(std::size_t)> extend = [&](std::size_t at) {
        if (at == order + 1) {
            out.insert(out.end(), window.begin(), window.end());
            return;
        }
        const bool may_pad = at + 2 < order + 1 && (at == 0 || window[at - 1] == -1);
        for (std::int32_t label = may_pad ? -1 : 0; label < n_labels; ++label) {
            window[at] = label;
            extend(at + 1);
        }
    };
    extend(0);
    return out;
}

struct Problem {
    std::int32_t n_labels;
    std::size_t order;
    std::vector<std::int32_t> windows;
    std::vector<std::uint8_t> allowed;
    ChainTopology topology;
    std::vector<std::int64_t> offsets, edges;
    std::vector<double> node, transition, start, stop;
    ChainScores scores;

    Problem(std::int32_t labels, std::size_t k, std::vector<std::int64_t> cuts, bool per_edge, double scale,
            unsigned seed)
        : n_labels(labels),
          order(k),
          windows(all_cliques(labels, k)),
          allowed(windows.size() / (k + 1), 1),
          topology(static_cast<std::size_t>(labels), k, windows, allowed),
          offsets(std::move(cuts)),
          edges{0} {
        for (std::size_t i = 1; i < offsets.size(); ++i)
            edges.push_back(edges.back() + std::max<std::int64_t>(offsets[i] - offsets[i - 1] - 1, 0));
        std::mt19937 generator(seed);
        std::normal_distribution<double> normal(0.0, scale);
        const auto draw = [&](std::vector<double>& v, std::size_t n) {
            v.resize(n);
            for (double& x : v) x = normal(generator);
        };
        const auto n = static_cast<std::size_t>(n_labels);
        draw(node, static_cast<std::size_t>(offsets.back()) * n);
        draw(transition, allowed.size() * (per_edge ? static_cast<std::size_t>(edges.back()) : 1));
        draw(start, n);
        draw(stop, n);
        scores = {.offsets = offsets,
                  .edge_offsets = edges,
                  .node = node.data(),
                  .start = start.data(),
                  .stop = stop.data(),
                  .transition = transition.data(),
                  .transition_per_edge = per_edge};
    }

    // Calls visit(labels) for every labelling of an example.
    void enumerate(std::size_t example, const std::function<void(const std::vector<std::int32_t>&)>& visit) const {
        std::vector<std::int32_t> labels(scores.length(example), 0);
        while (true) {
            visit(labels);
            std::size_t t = 0;
            while (t < labels.size() && ++labels[t] == n_labels) labels[t++] = 0;
            if (t == labels.size()) return;
        }
    }
};

void check_problem(const Problem& p, std::size_t n_threads) {
    std::vector<Status> statuses(p.scores.n_examples());
    ChainQueries oracle(p.topology, p.scores, n_threads, statuses.data());
    const std::size_t n = p.scores.n_examples(), nodes = p.scores.n_nodes(),
                      labels = static_cast<std::size_t>(p.n_labels);
    std::vector<double> log_partition(n), entropy(n), marginals(nodes * labels), sums(n * p.topology.n_cliques()),
        score(n), best(n * 2);
    std::vector<std::int32_t> argmax(nodes), two(2 * nodes), drawn(3 * nodes), given(nodes);
    oracle.marginals(marginals.data(), CliqueOutput::sum, sums.data(), log_partition.data());
    oracle.entropy(entropy.data());
    oracle.argmax(argmax.data());
    oracle.k_best(2, two.data(), best.data());
    oracle.sample(3, 7, drawn.data());
    for (const std::int32_t label : drawn) CHECK(label >= 0 && label < p.n_labels);
    for (std::size_t i = 0; i < n; ++i) {
        const auto first = static_cast<std::size_t>(p.offsets[i]);
        std::vector<double> want(p.scores.length(i) * labels, 0.0);
        std::vector<std::pair<double, std::vector<std::int32_t>>> everything;
        p.enumerate(i, [&](const std::vector<std::int32_t>& y) {
            std::copy(y.begin(), y.end(), given.begin() + p.offsets[i]);
            oracle.score(given.data(), score.data());
            everything.emplace_back(score[i], y);
        });
        double highest = -kInfinity, total = 0.0, energy = 0.0;
        for (const auto& [s, y] : everything) highest = std::max(highest, s);
        for (const auto& [s, y] : everything) total += std::exp(s - highest);
        for (const auto& [s, y] : everything) {
            const double probability = std::exp(s - highest) / total;
            energy += probability * (s - highest);
            for (std::size_t t = 0; t < y.size(); ++t) want[t * labels + static_cast<std::size_t>(y[t])] += probability;
            if (s == highest)
                for (std::size_t t = 0; t < y.size(); ++t) CHECK(argmax[first + t] == y[t]);
        }
        const double tolerance = 1e-10 * std::max(1.0, std::abs(highest));
        CHECK_NEAR(log_partition[i], highest + std::log(total), tolerance);
        CHECK_NEAR(entropy[i], std::log(total) - energy, tolerance);
        CHECK_NEAR(best[2 * i], highest, tolerance);
        for (std::size_t j = 0; j < want.size(); ++j) CHECK_NEAR(marginals[first * labels + j], want[j], tolerance);
    }
    for (const Status status : statuses) CHECK(status == Status::ok);
}

}  // namespace

TEST(chains_agree_with_enumeration) {
    unsigned seed = 0;
    for (const Routines& set : all_routines()) {
        if (!use_routines(set.name)) continue;
        for (const std::int32_t n_labels : {1, 2, 3})
            for (const std::size_t order : {1u, 2u, 3u})
                for (const bool per_edge : {false, true})
                    for (const double scale : {1.0, 300.0}) {
                        const Problem problem(n_labels, order, {0, 4, 4, 5, 9, 11, 15}, per_edge, scale, ++seed);
                        check_problem(problem, 1 + seed % 3);
                    }
    }
}

TEST(forbidden_labels_and_bad_numbers_have_a_status) {
    Problem p(2, 1, {0, 2, 4, 6}, false, 1.0, 1);
    p.node[2 * 2] = p.node[2 * 2 + 1] = -kInfinity;
    p.node[5 * 2] = std::nan("");
    std::vector<Status> statuses(3);
    ChainQueries oracle(p.topology, p.scores, 1, statuses.data());
    std::vector<double> out(3), nodes(12);
    std::vector<std::int32_t> labels(6);
    const auto check = [&] {
        CHECK(statuses[0] == Status::ok);
        CHECK(statuses[1] == Status::impossible);
        CHECK(statuses[2] == Status::bad_number);
    };
    oracle.log_partition(out.data());
    check();
    oracle.argmax(labels.data());
    check();
    oracle.marginals(nodes.data(), CliqueOutput::none, nullptr, out.data());
    check();
    oracle.max_marginals(nodes.data());
    check();
    oracle.entropy(out.data());
    check();
    oracle.sample(1, 0, labels.data());
    check();
}

TEST(topology_refuses_what_it_cannot_hold) {
    const auto refuses = [](std::size_t n_labels, std::size_t order, std::vector<std::int32_t> windows) {
        std::vector<std::uint8_t> allowed(windows.size() / (order + 1), 1);
        try {
            ChainTopology(n_labels, order, windows, allowed);
        } catch (const std::invalid_argument&) {
            return true;
        }
        return false;
    };
    CHECK(refuses(0, 1, {}));
    CHECK(refuses(2, 0, {0}));
    CHECK(refuses(2, 1, {0, 2}));            // a label out of range
    CHECK(refuses(2, 1, {-1, 0}));           // order 1 has no windows before the first node
    CHECK(refuses(2, 1, {1, 0, 0, 0}));      // not sorted
    CHECK(refuses(2, 1, {0, 0, 0, 0}));      // twice
    CHECK(refuses(2, 2, {0, -1, 0}));        // a gap
    CHECK(refuses(1u << 31, 2, {0, 0, 0}));  // does not fit 64 bits
    CHECK(!refuses(2, 2, {-1, 0, 1, 0, 1, 1}));
}

TEST(single_nodes_agree_with_chains_of_length_one) {
    Problem p(3, 1, {0, 1, 2, 3, 4, 5}, false, 2.0, 5);
    p.scores.start = p.scores.stop = nullptr;
    const ChainStructure chain(p.topology, p.offsets, {});
    const SingleStructure single(3, 5);
    std::vector<double> a(15), b(15), za(5), zb(5);
    std::vector<Status> statuses(5);
    const ScoreView scores{.own = {p.node.data()}};
    chain.marginals({0, 5}, scores, 1, {{a.data()}, nullptr}, za.data(), statuses.data());
    single.marginals({0, 5}, scores, 2, {{b.data()}, nullptr}, zb.data(), statuses.data());
    for (std::size_t i = 0; i < 15; ++i) CHECK_NEAR(a[i], b[i], 1e-14);
    for (std::size_t i = 0; i < 5; ++i) CHECK_NEAR(za[i], zb[i], 1e-13);
}

TEST(parallel_for_does_every_task_once_and_passes_exceptions_on) {
    for (const std::size_t n_threads : {1u, 2u, 7u}) {
        std::vector<int> done(100, 0);
        parallel_for(100, n_threads, [&](std::size_t worker, std::size_t task) {
            CHECK(worker < n_threads);
            ++done[task];
        });
        for (const int times : done) CHECK(times == 1);
        CHECK_THROWS(parallel_for(10, n_threads,
                                  [](std::size_t, std::size_t task) {
                                      if (task == 3) throw std::runtime_error("task");
                                  }),
                     std::runtime_error);
    }
}
