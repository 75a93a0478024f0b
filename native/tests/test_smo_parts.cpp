// What sequential minimal optimisation is made of: the move of one variable, offsets of classes, and the vector code.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "../src/solvers/kernel/binary_dual.hpp"
#include "../src/solvers/kernel/class_offsets.hpp"
#include "../src/solvers/kernel/mass_move.hpp"
#include "check.hpp"
#include "dualfield/vector/routines.hpp"

using namespace dualfield;

namespace {

using Real = long double;

// The imbalance after moving u, where u is given by what is left of the smallest room.
template <int N>
Real imbalance(Real force, Real bend, const MassEnd (&ends)[N], Real room, Real left) {
    Real sum = force - bend * (room - left);
    for (const MassEnd& end : ends) sum -= std::log((end.to + (room - left)) / ((end.from - room) + left));
    return sum;
}

template <int N>
void check_move(double force, double bend, const MassEnd (&ends)[N]) {
    Real room = ends[0].from, keep = 0;
    for (const MassEnd& end : ends) room = std::min<Real>(room, end.from);
    for (const MassEnd& end : ends) keep = std::max<Real>(keep, end.least - (end.from - room));
    const double before = static_cast<double>(imbalance<N>(force, bend, ends, room, room));
    if (!(before > 0.0)) return;
    if (!(keep < room)) {
        MassMove<N> none(force, bend, ends);
        CHECK(none.solve(before, 1e-9 * before) == 0.0 && none.after(0).from == ends[0].from);
        return;
    }
    // Bisection on a logarithmic scale, in the whole and then from either side.
    Real low = keep, high = room;
    for (int step = 0; step < 400 && imbalance<N>(force, bend, ends, room, keep) < 0; ++step) {
        const Real middle = low > 0 && high / low > 2 ? std::sqrt(low * high) : (low + high) / 2;
        (imbalance<N>(force, bend, ends, room, middle) > 0 ? high : low) = middle;
    }
    const Real left = imbalance<N>(force, bend, ends, room, keep) < 0 ? high : keep;
    MassMove<N> move(force, bend, ends);
    const double moved = move.solve(before, 1e-9 * before);
    CHECK(moved >= 0.0 && moved <= static_cast<double>(room));
    for (int k = 0; k < N; ++k) {
        const MassEnd after = move.after(k);
        const Real wanted = (ends[k].from - room) + left;
        CHECK_NEAR(after.from, static_cast<double>(wanted), 1e-5 * static_cast<double>(wanted));
        CHECK_NEAR(after.to, static_cast<double>(ends[k].to + (room - left)), 1e-5 * after.to);
        CHECK(after.from >= ends[k].least * (1.0 - 1e-12));
    }
    if (moved > 0.0) CHECK(move.gain(before) > 0.0);
}

template <class Body>
void for_each_set(Body body) {
    const char* name = routines().name;
    for (const Routines& set : all_routines()) {
        if (!set.is_supported()) continue;
        CHECK(use_routines(set.name));
        body(set);
    }
    CHECK(use_routines(name));
}

template <class T>
struct Columns {
    std::vector<T> pull, up, low, held, bend, p, q, weights;

    Columns(std::size_t n, unsigned seed, bool rounded) {
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> uniform(-3.0, 3.0), logit(-25.0, 25.0);
        for (std::size_t j = 0; j < n; ++j) {
            // Rounded to whole numbers there are many ties: the first must win.
            pull.push_back(static_cast<T>(rounded ? std::round(uniform(random)) : uniform(random)));
            up.push_back(static_cast<T>(rounded ? std::round(uniform(random)) : uniform(random)));
            low.push_back(static_cast<T>(rounded ? std::round(uniform(random)) : uniform(random)));
            held.push_back(static_cast<T>(static_cast<int>(random() % 3) - 1));
            bend.push_back(static_cast<T>(8.0 + uniform(random)));
            const double at = logit(random);
            p.push_back(static_cast<T>(1.0 / (1.0 + std::exp(-at))));
            q.push_back(static_cast<T>(1.0 / (1.0 + std::exp(at))));
            weights.push_back(static_cast<T>(4.0 + uniform(random)));
        }
    }
};

template <class T>
void check_scan(const Routines& set, std::size_t n, int n_rows, bool with_held, bool rounded) {
    Columns<T> columns(n + 3, static_cast<unsigned>(n), rounded);
    const std::vector<T> before = columns.pull;
    const std::size_t first = n > 2 ? 2 : 0, last = n;
    const SmoScan<T> in{.pull = columns.pull.data(),
                        .row_up = n_rows > 0 ? columns.up.data() : nullptr,
                        .row_low = n_rows > 1 ? columns.low.data() : nullptr,
                        .step = T(0.5),
                        .held = with_held ? columns.held.data() : nullptr};
    SmoExtremes<T> found{};
    set.kernel<T>().smo_scan(in, first, last, found);
    std::int32_t up = -1, low = -1;
    for (std::size_t j = 0; j < n + 3; ++j) {
        double wanted = static_cast<double>(before[j]);
        if (j >= first && j < last) {
            if (n_rows > 0) wanted -= 0.5 * static_cast<double>(columns.up[j]);
            if (n_rows > 1) wanted += 0.5 * static_cast<double>(columns.low[j]);
        }
        CHECK_NEAR(static_cast<double>(columns.pull[j]), wanted, 2e-6);
        if (j < first || j >= last) continue;
        const T h = columns.pull[j];
        if (!(with_held && columns.held[j] > T(0)) && (up < 0 || h > columns.pull[up]))
            up = static_cast<std::int32_t>(j);
        if (!(with_held && columns.held[j] < T(0)) && (low < 0 || h < columns.pull[low]))
            low = static_cast<std::int32_t>(j);
    }
    CHECK(found.up == up && found.low == low);
    if (up >= 0) CHECK(found.highest == columns.pull[up]);
    if (low >= 0) CHECK(found.lowest == columns.pull[low]);
}

template <class T>
void check_partners(const Routines& set, std::size_t n, bool with_held) {
    const Columns<T> columns(n, static_cast<unsigned>(n) + 100, false);
    const SmoPartners<T> in{.pull = columns.pull.data(),
                            .bend = columns.bend.data(),
                            .row_up = columns.up.data(),
                            .row_low = columns.low.data(),
                            .highest = T(3.5),
                            .lowest = T(-3.5),
                            .bend_up = T(9),
                            .bend_low = T(10),
                            .held = with_held ? columns.held.data() : nullptr};
    SmoChoice<T> found;
    set.kernel<T>().smo_partners(in, 0, n, found);
    double best_low = 0.0, best_up = 0.0;
    const auto value = [&](std::size_t j, bool of_up) {
        const double d = of_up ? 3.5 - double(columns.pull[j]) : double(columns.pull[j]) + 3.5;
        return d * d /
               ((of_up ? 9.0 : 10.0) + double(columns.bend[j]) - 2.0 * double((of_up ? columns.up : columns.low)[j]));
    };
    for (std::size_t j = 0; j < n; ++j) {
        if (!(with_held && columns.held[j] < T(0))) best_low = std::max(best_low, value(j, true));
        if (!(with_held && columns.held[j] > T(0))) best_up = std::max(best_up, value(j, false));
    }
    CHECK((found.low >= 0) == (best_low > 0.0) && (found.up >= 0) == (best_up > 0.0));
    CHECK(found.low < static_cast<std::int32_t>(n) && found.up < static_cast<std::int32_t>(n));
    if (found.low >= 0) CHECK_NEAR(value(static_cast<std::size_t>(found.low), true), best_low, 1e-5 * best_low);
    if (found.up >= 0) CHECK_NEAR(value(static_cast<std::size_t>(found.up), false), best_up, 1e-5 * best_up);
}

template <class T>
void check_gap(const Routines& set, std::size_t n, double bias) {
    const Columns<T> columns(n, static_cast<unsigned>(n) + 200, false);
    const SmoGap<T> in{.pull = columns.pull.data(),
                       .p = columns.p.data(),
                       .q = columns.q.data(),
                       .weights = columns.weights.data(),
                       .bias = static_cast<T>(bias)};
    SmoGapSums sums, wanted;
    set.kernel<T>().smo_gap(in, 0, n, sums);
    for (std::size_t j = 0; j < n; ++j) {
        const double d = static_cast<double>(columns.pull[j] + static_cast<T>(bias));
        const SmoGapSums here = divergence(double(columns.p[j]), double(columns.q[j]), d);
        wanted.gap += double(columns.weights[j]) * here.gap;
        wanted.slope += double(columns.weights[j]) * here.slope;
        wanted.curvature += double(columns.weights[j]) * here.curvature;
    }
    const double precision = sizeof(T) == 4 ? 2e-4 : 1e-8;
    CHECK_NEAR(sums.gap, wanted.gap, precision * (wanted.gap + 1e-9));
    CHECK_NEAR(sums.slope, wanted.slope, precision * (1.0 + wanted.gap));
    CHECK_NEAR(sums.curvature, wanted.curvature, precision * (1.0 + wanted.curvature));
}

}  // namespace

TEST(mass_moves_are_exact_at_every_scale) {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> exponent(-30.0, 0.0), wide(-8.0, 8.0);
    for (int round = 0; round < 20000; ++round) {
        MassEnd one[1], two[2];
        const double scale = std::exp(wide(random)), bend = round % 7 == 0 ? 0.0 : std::exp(wide(random)) / scale;
        const auto end = [&] {
            const double c = scale * std::exp(0.1 * wide(random)),
                         p = 0.5 * std::exp(random() % 2 ? exponent(random) : 0.0);
            return random() % 2 ? MassEnd{.from = c * p, .to = c * (1 - p), .least = c * 1e-13}
                                : MassEnd{.from = c * (1 - p), .to = c * p, .least = c * 1e-13};
        };
        one[0] = end();
        two[0] = end();
        two[1] = end();
        const double reach = round % 3 == 0 ? 1e-5 : round % 3 == 1 ? 3.0 : 300.0;
        const double start_one = std::log(one[0].to / one[0].from);
        const double start_two = std::log(two[0].to / two[0].from) + std::log(two[1].to / two[1].from);
        check_move<1>(start_one + reach * std::abs(wide(random)), bend, one);
        check_move<2>(start_two + reach * std::abs(wide(random)), bend, two);
    }
}

TEST(mass_moves_end_at_the_box) {
    const MassEnd held[1] = {{.from = 1e-5, .to = 1.0, .least = 1e-5}};
    CHECK(MassMove<1>(100.0, 0.0, held).solve(80.0, 0.1) == 0.0);
    const MassEnd free[1] = {{.from = 0.5, .to = 0.5, .least = 1e-5}};
    MassMove<1> move(100.0, 0.0, free);
    CHECK(move.solve(100.0, 0.1) > 0.49);
    CHECK_NEAR(move.after(0).from, 1e-5, 1e-18);
}

TEST(divergences_do_not_cancel) {
    for (const double logit : {-300.0, -25.0, -3.0, 0.0, 0.1, 4.0, 28.0, 500.0})
        for (const double d :
             {0.0, 1e-12, -1e-7, 1e-3, 0.0199, -0.0201, 0.5, -4.0, 30.0, -200.0, 650.0, -720.0, 900.0}) {
            const double p = 1.0 / (1.0 + std::exp(-logit)), q = 1.0 / (1.0 + std::exp(logit));
            const SmoGapSums found = divergence(p, q, d);
            const Real s = std::min(p, q), x = p <= q ? d : -d, e = std::expm1(x), total = 1 + s * e, v = s * (1 - s);
            // Even long double cancels close to zero.
            const Real kl = std::abs(d) < 1e-2 ? v * x * x / 2 * (1 + x * (1 - 2 * s) / 3) : std::log1p(s * e) - s * x;
            const double slack = std::abs(d) < 1e-2 ? 1e-5 : 1e-8;
            CHECK_NEAR(found.gap, static_cast<double>(kl), slack * static_cast<double>(kl));
            const Real slope = (p <= q ? 1 : -1) * v * e / total, curvature = v * (1 + e) / (total * total);
            CHECK_NEAR(found.slope, static_cast<double>(slope), 1e-9 * static_cast<double>(std::abs(slope)));
            CHECK_NEAR(found.curvature, static_cast<double>(curvature), 1e-9 * static_cast<double>(curvature) + 1e-15);
            if (std::abs(logit) > 5.0 || std::abs(d) < 0.1) continue;
            const Real other = 1 / (1 + std::exp(-static_cast<Real>(logit + d)));
            const Real plain =
                p * std::log(p / other) + q * (std::log(static_cast<Real>(q)) + std::log1p(std::exp(Real(logit + d))));
            CHECK_NEAR(found.gap, static_cast<double>(plain), 1e-12);
            CHECK_NEAR(found.slope, static_cast<double>(other - p), 1e-12);
        }
}

TEST(offsets_level_the_classes) {
    std::mt19937 random(4);
    std::uniform_real_distribution<double> uniform(-6.0, 6.0);
    for (const bool pinned : {true, false})
        for (const std::size_t n_classes : {2, 5}) {
            const std::size_t n = 60;
            std::vector<std::int32_t> labels;
            std::vector<double> weights, scores;
            for (std::size_t i = 0; i < n; ++i) {
                labels.push_back(static_cast<std::int32_t>(i % n_classes));
                weights.push_back(std::exp(uniform(random)));
                for (std::size_t y = 0; y < n_classes; ++y) scores.push_back(10.0 * uniform(random));
            }
            const auto row = [&](std::size_t i, double* out) {
                std::copy_n(scores.data() + i * n_classes, n_classes, out);
            };
            const OffsetProblem problem{n_classes, pinned, labels, weights};
            std::vector<double> offsets(n_classes, 0.0), slopes(n_classes), curvature(n_classes * n_classes);
            fit_offsets(problem, row, offsets);
            offset_sums(problem, row, offsets, slopes, curvature);
            double mass = 0.0;
            for (const double weight : weights) mass += weight;
            for (const double slope : slopes) CHECK(std::abs(slope) <= 1e-13 * mass);
            if (pinned) CHECK(offsets[0] == 0.0);
        }
}

TEST(smo_scans_agree_with_plain_loops) {
    for_each_set([](const Routines& set) {
        for (const std::size_t n : {0, 1, 2, 3, 5, 7, 8, 9, 15, 31, 63, 64, 65, 66, 127, 130, 515, 1031})
            for (const bool with_held : {false, true}) {
                for (int n_rows = 0; n_rows <= 2; ++n_rows)
                    for (const bool rounded : {false, true}) {
                        check_scan<float>(set, n, n_rows, with_held, rounded);
                        check_scan<double>(set, n, n_rows, with_held, rounded);
                    }
                check_partners<float>(set, n, with_held);
                check_partners<double>(set, n, with_held);
            }
    });
}

TEST(smo_gaps_agree_with_double_precision) {
    for_each_set([](const Routines& set) {
        for (const std::size_t n : {1, 3, 4, 8, 9, 100, 333})
            for (const double bias : {0.0, 1e-3, 5.0, -60.0}) {
                check_gap<float>(set, n, bias);
                check_gap<double>(set, n, bias);
            }
    });
}
