// The vector code of every instruction set against the standard library and against each other.
#include <cmath>
#include <random>
#include <vector>

#include "check.hpp"
#include "dualfield/structures/parse_trees/split_task.hpp"
#include "dualfield/vector/routines.hpp"

using namespace dualfield;

namespace {

template <class Body>
void for_each_set(Body body) {
    const char* before = routines().name;
    for (const Routines& set : all_routines()) {
        if (!set.is_supported()) continue;
        CHECK(use_routines(set.name));
        body(set);
    }
    CHECK(use_routines(before));
}

}  // namespace

TEST(exponential_is_accurate_to_three_units) {
    for_each_set([](const Routines& set) {
        std::mt19937_64 generator(0);
        std::uniform_real_distribution<double> wide(-707.0, 700.0), near(-1.0, 1.0);
        double worst = 0.0;
        for (int i = 0; i < 200000; ++i) {
            double x[4] = {wide(generator), near(generator), wide(generator), 0.0}, y[4];
            set.exponentials(x, 0.0, 4, y);
            for (int k = 0; k < 4; ++k) worst = std::max(worst, std::abs(y[k] - std::exp(x[k])) / std::exp(x[k]));
        }
        CHECK(worst < 3 * 2.220446049250313e-16);
    });
}

TEST(exponential_at_the_edges) {
    for_each_set([](const Routines& set) {
        double x[4] = {-kInfinity, -1e300, 0.0, -708.5}, y[4];
        const double sum = set.exponentials(x, 0.0, 4, y);
        CHECK(y[0] == 0.0 && y[1] == 0.0 && y[2] == 1.0 && y[3] == 0.0);
        CHECK(sum == 1.0);
    });
}

TEST(messages_are_logarithms_of_sums) {
    for_each_set([](const Routines& set) {
        std::mt19937_64 generator(1);
        std::normal_distribution<double> normal;
        for (std::size_t n = 1; n < 14; ++n)
            for (const double scale : {1e-3, 1.0, 60.0}) {
                const std::size_t width = padded(n);
                std::vector<double> cavity(width, -kInfinity), table(n * width, MessageTask::kPadding);
                std::vector<double> factors(width), sums(width), out(n);
                for (std::size_t a = 0; a < n; ++a) {
                    cavity[a] = scale * normal(generator);
                    for (std::size_t b = 0; b < n; ++b)
                        table[a * width + b] = std::exp(scale * normal(generator) / 2.0);
                }
                MessageTask task{n, cavity.data(), table.data(), factors.data(), sums.data(), out.data()};
                CHECK(set.send_sums(task));
                for (std::size_t b = 0; b < n; ++b) {
                    double sum = 0.0;
                    for (std::size_t a = 0; a < n; ++a) sum += table[a * width + b] * std::exp(cavity[a] - task.shift);
                    const double expected = std::log(sum);
                    CHECK(std::abs(out[b] + task.highest - expected) <= 4e-15 * std::max(1.0, std::abs(expected)));
                }
            }
        double cavity[4] = {-kInfinity, -kInfinity, -kInfinity, -kInfinity}, table[4] = {1.0, 1e-200, 1e-200, 1e-200};
        double factors[4], sums[4], out[1];
        MessageTask none{1, cavity, table, factors, sums, out};
        CHECK(!set.send_sums(none));
        cavity[0] = 0.0;
        table[0] = 1e-260;
        CHECK(!set.send_sums(none));
    });
}

TEST(rules_of_a_run_are_summed_and_counted) {
    for_each_set([](const Routines& set) {
        std::mt19937_64 generator(3);
        std::uniform_real_distribution<double> uniform(0.1, 1.0);
        for (std::size_t n = 1; n < 40; ++n) {
            const std::vector<std::int32_t> firsts{static_cast<std::int32_t>(2 * n), 0, static_cast<std::int32_t>(n)};
            std::vector<std::int32_t> rule(3 * n);
            for (std::size_t q = 0; q < rule.size(); ++q) rule[q] = static_cast<std::int32_t>((q + n) % rule.size());
            const std::vector<UsedPair> pairs{{2, 0, 1, uniform(generator)}, {0, 0, 1, uniform(generator)}};
            std::vector<double> weights(3 * n + kLanes, 0.0), sums(n, 1.0), above(n), counts(3 * n, 2.0), found(2);
            for (std::size_t q = 0; q < 3 * n; ++q) weights[q] = uniform(generator);
            for (double& one : above) one = uniform(generator);
            std::vector<double> right_sums = sums, right_counts = counts, right_found(2, 0.0);
            for (std::size_t at = 0; at < 2; ++at)
                for (std::size_t a = 0; a < n; ++a) {
                    const std::size_t q = static_cast<std::size_t>(firsts[pairs[at].pair]) + a;
                    right_sums[a] += weights[q] * pairs[at].sum;
                    right_found[at] += weights[q] * above[a];
                    right_counts[static_cast<std::size_t>(rule[q])] += weights[q] * above[a] * pairs[at].sum;
                }
            const auto are_near = [](const std::vector<double>& a, const std::vector<double>& b) {
                for (std::size_t i = 0; i < a.size(); ++i)
                    if (!(std::abs(a[i] - b[i]) <= 1e-14 * b[i])) return false;
                return true;
            };
            const RunTask task{firsts.data(), rule.data(), weights.data(), n, found.data()};
            set.run_up(task, pairs, sums.data());
            CHECK(are_near(sums, right_sums));
            set.run_down(task, pairs, above.data(), counts.data());
            CHECK(are_near(found, right_found) && are_near(counts, right_counts));
            std::ranges::fill(found, 7.0);
            set.run_down(task, pairs, above.data(), nullptr);
            CHECK(are_near(found, right_found));
        }
    });
}

TEST(entropy_is_that_of_the_standard_library) {
    for_each_set([](const Routines& set) {
        std::mt19937_64 generator(2);
        std::uniform_real_distribution<double> uniform(0.0, 1.0);
        for (std::size_t n = 1; n < 30; ++n) {
            std::vector<double> p(n);
            double expected = 0.0;
            for (std::size_t i = 0; i < n; ++i) {
                p[i] = i % 5 == 3 ? 0.0 : std::pow(uniform(generator), 30.0);
                if (p[i] > 0.0) expected -= p[i] * std::log(p[i]);
            }
            CHECK(std::abs(set.entropy(p.data(), n) - expected) <= 1e-14 * std::max(1.0, std::abs(expected)));
        }
        const double none[3] = {0.0, 1.0, 5e-324};
        CHECK(set.entropy(none, 3) == 0.0);
    });
}

TEST(rows_are_padded_scaled_and_checked) {
    for_each_set([](const Routines& set) {
        for (std::size_t n = 1; n < 14; ++n) {
            std::vector<double> scores(n), cost(n), row(padded(n));
            for (std::size_t i = 0; i < n; ++i) {
                scores[i] = static_cast<double>(i * 7 % 5);
                cost[i] = 0.5;
            }
            const RowBounds bounds = set.read_row(scores.data(), cost.data(), n, 2.0, row.data());
            double highest = -kInfinity;
            for (std::size_t i = 0; i < n; ++i) {
                CHECK(row[i] == 2.0 * (scores[i] + 0.5));
                highest = std::max(highest, row[i]);
            }
            for (std::size_t i = n; i < padded(n); ++i) CHECK(row[i] == -kInfinity);
            CHECK(bounds.highest == highest && !bounds.bad_number);
            scores[n - 1] = -kInfinity;
            CHECK(!set.read_row(scores.data(), nullptr, n, 1.0, row.data()).bad_number);
            scores[n - 1] = kInfinity;
            CHECK(set.read_row(scores.data(), nullptr, n, 1.0, row.data()).bad_number);
            scores[n - 1] = std::nan("");
            CHECK(set.read_row(scores.data(), nullptr, n, 1.0, row.data()).bad_number);
        }
    });
}

TEST(unknown_instruction_set_is_refused) {
    CHECK(!use_routines("mmx"));
}
