// Rows of log-probabilities: the conditions that only the nearest point meets.
#include <cmath>
#include <random>
#include <vector>

#include "check.hpp"
#include "dualfield/regularisers/table_rows.hpp"

using namespace dualfield;

TEST(wright_omega_solves_its_equation) {
    for (double z = -300.0; z < 2000.0; z += 0.37) {
        const double w = wright_omega(z);
        CHECK(w > 0.0);
        CHECK_NEAR(w + std::log(w), z, 4e-15 * (std::fabs(z) + 1.0));
    }
    CHECK_NEAR(wright_omega(1.0), 1.0, 1e-15);
    CHECK(wright_omega(-1e4) == 0.0);
    CHECK_NEAR(wright_omega(1e10), 1e10 - std::log(1e10), 1e-4);
}

TEST(rows_are_projected) {
    std::mt19937 generator(7);
    std::normal_distribution<double> normal;
    std::vector<std::int64_t> starts{0};
    std::vector<double> target;
    for (const double scale : {0.1, 1.0, 10.0, 1e4})
        for (std::size_t size = 1; size < 40; size += 3) {
            for (std::size_t j = 0; j < size; ++j) target.push_back(scale * (normal(generator) - 1.0));
            starts.push_back(static_cast<std::int64_t>(target.size()));
        }
    const double floor = -25.0;
    const std::size_t n_rows = starts.size() - 1;
    std::vector<double> theta(target.size()), nu(n_rows), again(target.size()), nu_again(n_rows);
    project_rows(target.data(), starts.data(), n_rows, floor, 1, theta.data(), nu.data());
    project_rows(target.data(), starts.data(), n_rows, floor, 3, again.data(), nu_again.data());
    CHECK(theta == again && nu == nu_again);
    for (std::size_t i = 0; i < n_rows; ++i) {
        double sum = 0.0;
        for (std::int64_t j = starts[i]; j < starts[i + 1]; ++j) {
            sum += std::exp(theta[j]);
            CHECK(theta[j] >= floor);
            // Stationary: theta + nu exp(theta) = target, or above the target at the floor.
            const double residual = theta[j] + nu[i] * std::exp(theta[j]) - target[j];
            if (theta[j] > floor)
                CHECK_NEAR(residual, 0.0, 1e-9 * (1.0 + std::fabs(target[j])));
            else
                CHECK(residual >= -1e-9);
        }
        CHECK(sum <= 1.0 + 1e-12);
        CHECK(nu[i] >= 0.0);
        if (nu[i] > 0.0) CHECK_NEAR(sum, 1.0, 1e-12);
    }
}
