// Scores of rows of features, and what rows add to the weights, against plain loops over a dense matrix.
#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "dualfield/core/memory.hpp"
#include "dualfield/scores/linear_map.hpp"
#include "dualfield/vector/routines.hpp"

using namespace dualfield;

namespace {

constexpr std::size_t kRows = 6, kColumns = 9;

// A random table and random rows, dense and sparse: the sparse ones have repeated indices, and weights unless `unit`.
struct Problem {
    std::size_t n_outputs;
    bool unit;
    std::vector<std::int64_t> indptr{0}, row_begin{0}, places;
    std::vector<std::int32_t> outputs, indices;
    std::vector<double> values, dense;
    LinearMap map;

    Problem(std::size_t n, double share, unsigned seed) : n_outputs(n), unit(seed % 2 == 0), map(make(n, share, seed)) {
        places.resize(map.n_features());
        map.feature_places(places.data());
    }

    LinearMap make(std::size_t n, double share, unsigned seed) {
        std::mt19937 generator(seed);
        std::uniform_real_distribution<double> between(0.0, 1.0);
        for (std::size_t c = 0; c < kColumns; ++c) {
            for (std::size_t k = 0; k < n; ++k)
                if (between(generator) < share) outputs.push_back(static_cast<std::int32_t>(k));
            indptr.push_back(static_cast<std::int64_t>(outputs.size()));
        }
        dense.assign(kRows * kColumns, 0.0);
        for (std::size_t r = 0; r < kRows; ++r) {
            for (std::size_t i = 0; i < r; ++i) {  // the first row is empty
                indices.push_back(static_cast<std::int32_t>(generator() % kColumns));
                values.push_back(unit ? 1.0 : between(generator) - 0.5);
                dense[r * kColumns + static_cast<std::size_t>(indices.back())] += values.back();
            }
            row_begin.push_back(static_cast<std::int64_t>(indices.size()));
        }
        return {n, indptr, outputs};
    }

    FeatureRows sparse_rows() const {
        return {row_begin.data(), indices.data(), unit ? nullptr : values.data(), nullptr, kColumns};
    }
    FeatureRows dense_rows() const { return {nullptr, nullptr, nullptr, dense.data(), kColumns}; }

    // Calls use(column, output, place) for all features.
    template <class Use>
    void for_features(Use use) const {
        for (std::size_t c = 0; c < kColumns; ++c)
            for (auto f = static_cast<std::size_t>(indptr[c]); f < static_cast<std::size_t>(indptr[c + 1]); ++f)
                use(c, static_cast<std::size_t>(outputs[f]), static_cast<std::size_t>(places[f]));
    }
};

void check_rows(const Problem& p, const FeatureRows& rows, const FeaturePlan* plan, const Routines& set) {
    std::mt19937 generator(7);
    std::normal_distribution<double> normal;
    Aligned<double> weights(p.map.size(), 0.0), scratch(2 * p.map.width(), 0.0);
    for (const std::int64_t place : p.places) weights[static_cast<std::size_t>(place)] = normal(generator);

    std::vector<double> scores(kRows * p.n_outputs), want(scores.size(), 0.0);
    if (plan)
        set.score_plan(p.map, *plan, weights.data(), 0, kRows, scores.data(), scratch.data());
    else
        set.score_rows(p.map, rows, weights.data(), 0, kRows, scores.data(), scratch.data());
    for (std::size_t r = 0; r < kRows; ++r)
        p.for_features([&](std::size_t column, std::size_t output, std::size_t place) {
            want[r * p.n_outputs + output] += p.dense[r * kColumns + column] * weights[place];
        });
    for (std::size_t i = 0; i < want.size(); ++i) CHECK_NEAR(scores[i], want[i], 1e-12);

    // Rows 2 ... 4 add to the weights; the rest of the vector stays as it is.
    std::vector<double> d(3 * p.n_outputs), moved(weights.begin(), weights.end());
    for (double& x : d) x = normal(generator);
    const auto half_square = [](const auto& v) {
        double sum = 0.0;
        for (const double x : v) sum += 0.5 * x * x;
        return sum;
    };
    const double before = half_square(weights);
    for (std::size_t r = 0; r < 3; ++r)
        p.for_features([&](std::size_t column, std::size_t output, std::size_t place) {
            moved[place] += -0.7 * p.dense[(r + 2) * kColumns + column] * d[r * p.n_outputs + output];
        });
    const auto add = [&](double scale, double* w, const Shrinkage* shrinkage) {
        return plan ? set.add_plan(p.map, *plan, d.data(), scale, 2, 5, w, scratch.data(), shrinkage)
                    : set.add_rows(p.map, rows, d.data(), scale, 2, 5, w, scratch.data(), shrinkage);
    };
    const double grown = add(-0.7, weights.data(), nullptr);
    for (std::size_t j = 0; j < moved.size(); ++j) CHECK_NEAR(weights[j], moved[j], 1e-12);
    CHECK_NEAR(grown, half_square(weights) - before, 1e-11);

    // With a shrinkage the same vector is the dual one, and weights follow from it.
    const Shrinkage shrinkage{static_cast<std::ptrdiff_t>(p.map.size()), 0.4, 0.25};
    Aligned<double> both(2 * p.map.size(), 0.0);
    double* dual = both.data() + p.map.size();
    const auto shrunk = [](double v) { return std::copysign(std::max(std::abs(v) - 0.4, 0.0), v) / 0.25; };
    std::copy(weights.begin(), weights.end(), dual);
    for (std::size_t j = 0; j < moved.size(); ++j) both[j] = shrunk(dual[j]);
    const auto conjugate = [&] {
        double sum = 0.0;
        for (std::size_t j = 0; j < moved.size(); ++j) sum += 0.125 * both[j] * both[j];
        return sum;
    };
    const double conjugate_before = conjugate();
    const double conjugate_grown = add(0.7, both.data(), &shrinkage);
    add(0.7, weights.data(), nullptr);
    for (std::size_t j = 0; j < moved.size(); ++j) {
        CHECK_NEAR(dual[j], weights[j], 1e-12);
        CHECK_NEAR(both[j], shrunk(weights[j]), 1e-11);
    }
    CHECK_NEAR(conjugate_grown, conjugate() - conjugate_before, 1e-10);
}

}  // namespace

TEST(rows_of_features_agree_with_plain_loops) {
    unsigned seed = 0;
    for (const Routines& set : all_routines()) {
        if (!set.is_supported()) continue;
        for (std::size_t n_outputs = 1; n_outputs <= 41; ++n_outputs)
            for (const double share : {0.0, 0.1, 0.5, 1.0}) {
                const Problem p(n_outputs, share, ++seed);
                check_rows(p, p.dense_rows(), nullptr, set);
                check_rows(p, p.sparse_rows(), nullptr, set);
                const FeaturePlan plan(p.map, p.sparse_rows(), kRows);
                check_rows(p, p.sparse_rows(), &plan, set);
            }
    }
}

TEST(every_feature_has_a_place_of_its_own) {
    for (const std::size_t n_outputs : {1u, 4u, 5u, 33u})
        for (const double share : {0.05, 0.3, 1.0}) {
            const Problem p(n_outputs, share, static_cast<unsigned>(n_outputs));
            const std::set<std::int64_t> places(p.places.begin(), p.places.end());
            CHECK(places.size() == p.map.n_features());
            if (!places.empty())
                CHECK(*places.begin() >= 0 && static_cast<std::size_t>(*places.rbegin()) < p.map.size());
            CHECK(p.map.listed_begin() % kLanes == 0);
        }
}

TEST(tables_that_are_not_sound_are_refused) {
    const auto refuses = [](std::size_t n, std::vector<std::int64_t> indptr, std::vector<std::int32_t> outputs) {
        try {
            LinearMap(n, indptr, outputs);
        } catch (const std::invalid_argument&) {
            return true;
        }
        return false;
    };
    CHECK(refuses(0, {0}, {}));
    CHECK(refuses(2, {}, {}));
    CHECK(refuses(2, {1}, {}));
    CHECK(refuses(2, {0, 2}, {0}));  // more than there are
    CHECK(refuses(2, {0, 1}, {2}));  // out of range
    CHECK(refuses(2, {0, 1}, {-1}));
    CHECK(refuses(2, {0, 2}, {1, 0}));  // not rising
    CHECK(refuses(2, {0, 2}, {0, 0}));  // twice
    CHECK(refuses(2, {0, 2, 1}, {0}));  // falls
    CHECK(!refuses(2, {0, 0, 2}, {0, 1}));
}

TEST(features_that_occur_often_enough) {
    const std::vector<std::int64_t> indptr{0, 3, 4, 6, 7};
    const std::vector<std::int32_t> indices{0, 1, 1, 0, 2, 0, 1}, labels{1, 0, 1, -1};
    const std::vector<double> values{1, 1, 1, 1, 0, 1, 1};  // a weight of 0 is no occurrence
    const FeatureRows rows{indptr.data(), indices.data(), values.data(), nullptr, 3};
    const auto check = [&](std::size_t least, std::vector<std::int64_t> begins, std::vector<std::int32_t> outputs) {
        const ObservedFeatures found = observe_features(rows, labels, 2, least);
        CHECK(found.indptr == begins);
        CHECK(found.outputs == outputs);
    };
    check(1, {0, 2, 3, 3}, {0, 1, 1});
    check(2, {0, 1, 2, 2}, {1, 1});
    check(3, {0, 0, 0, 0}, {});
}
