// Edges dealt out to forests, and exponentials that never become denormal.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../src/structures/graphs/forest_bound.hpp"
#include "../src/structures/graphs/forests.hpp"
#include "check.hpp"

using namespace dualfield;

namespace {

std::vector<std::int32_t> grid(std::int32_t height, std::int32_t width) {
    std::vector<std::int32_t> edges;
    for (std::int32_t i = 0; i < height; ++i)
        for (std::int32_t j = 0; j < width; ++j) {
            const std::int32_t at = i * width + j;
            if (j + 1 < width) edges.insert(edges.end(), {at, at + 1});
            if (i + 1 < height) edges.insert(edges.end(), {at + width, at});  // any direction
        }
    return edges;
}

// Every edge leads from a child to its parent in its forest, or back: then there are no circles.
void check_forests(const Forests& forests, std::size_t n_edges) {
    CHECK(forests.forest_of.size() == n_edges);
    CHECK(forests.rising.size() == n_edges);
    std::vector<int> times(n_edges, 0);
    for (const std::int32_t arc : forests.rising) ++times[static_cast<std::size_t>(arc) / 2];
    CHECK(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }));
}

}  // namespace

TEST(grids_fall_into_two_forests_of_rising_paths) {
    const auto edges = grid(5, 7);
    const std::size_t n_edges = edges.size() / 2;
    const Forests forests = cut_into_forests(35, edges.data(), n_edges);
    CHECK(forests.count == 2);
    check_forests(forests, n_edges);
    for (std::size_t f = 0; f < 2; ++f)
        for (std::size_t v = 0; v < 35; ++v) {
            int lower = 0, higher = 0;
            for (const std::int32_t arc : forests.into(f, v))
                ++(forests.ends[static_cast<std::size_t>(arc ^ 1)] < static_cast<std::int32_t>(v) ? lower : higher);
            CHECK(lower <= 1 && higher <= 1);
        }
}

TEST(stars_are_one_forest_and_full_graphs_are_few) {
    std::vector<std::int32_t> star, full;
    for (std::int32_t t = 1; t < 9; ++t) star.insert(star.end(), {0, t});
    for (std::int32_t a = 0; a < 9; ++a)
        for (std::int32_t b = 0; b < a; ++b) full.insert(full.end(), {a, b});
    const Forests one = cut_into_forests(9, star.data(), 8), many = cut_into_forests(9, full.data(), 36);
    CHECK(one.count == 1);
    CHECK(many.count <= 6);  // 5 would do
    check_forests(one, 8);
    check_forests(many, 36);
    CHECK(cut_into_forests(3, nullptr, 0).roots.size() == 3);
}

TEST(small_exponentials_are_zero_and_not_denormal) {
    for (double x = -650.0; x > -800.0; x -= 0.25) {
        const double y = exp_or_zero(x);
        CHECK(y == 0.0 || y >= std::numeric_limits<double>::min());
    }
    CHECK(exp_or_zero(-600.0) == std::exp(-600.0));
    CHECK(exp_or_zero(-800.0) == 0.0);
}
