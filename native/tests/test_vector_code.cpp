// The vector code of every instruction set against the standard library and against each other.
#include <cmath>
#include <random>
#include <vector>

#include "check.hpp"
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
