// Points of zeros and ones as bits against the same points in floating point, and the cache of kernel rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "dualfield/kernels/bit_counts.hpp"
#include "dualfield/kernels/bit_points.hpp"
#include "dualfield/kernels/gram.hpp"
#include "dualfield/vector/routines.hpp"

using namespace dualfield;

namespace {

constexpr std::size_t kFeatures[] = {1, 7, 63, 64, 65, 127, 128, 129, 200, 256, 257, 384, 385, 700};

const std::vector<KernelFunction> kFunctions = {
    {.kind = KernelKind::linear},
    {.kind = KernelKind::poly, .gamma = 0.3, .coef0 = 1.0, .degree = 3.0},
    {.kind = KernelKind::poly, .gamma = 0.2, .coef0 = 0.5, .degree = 1.7},
    {.kind = KernelKind::rbf, .gamma = 0.05},
    {.kind = KernelKind::laplacian, .gamma = 0.03},
    {.kind = KernelKind::sigmoid, .gamma = 0.02, .coef0 = -0.4},
};

std::vector<std::uint8_t> random_bits(std::size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::uint8_t> values(n);
    for (auto& value : values) value = static_cast<std::uint8_t>(random() % 5 < 2);
    return values;
}

template <class S>
Matrix<S> dense(std::size_t n_features, const std::vector<S>& values) {
    return {.n = values.size() / n_features, .n_features = n_features, .values = values.data()};
}

// Feature by feature, in long double.
double reference(const KernelFunction& function, std::size_t n_features, const std::uint8_t* x, const std::uint8_t* z) {
    long double both = 0.0L, differing = 0.0L;
    for (std::size_t f = 0; f < n_features; ++f) {
        both += x[f] && z[f] ? 1.0L : 0.0L;
        differing += x[f] != z[f] ? 1.0L : 0.0L;
    }
    const auto gamma = static_cast<long double>(function.gamma), coef0 = static_cast<long double>(function.coef0);
    switch (function.kind) {
        case KernelKind::linear:
            return static_cast<double>(both);
        case KernelKind::poly:
            return static_cast<double>(std::pow(gamma * both + coef0, static_cast<long double>(function.degree)));
        case KernelKind::sigmoid:
            return static_cast<double>(std::tanh(gamma * both + coef0));
        default:
            return static_cast<double>(std::exp(-gamma * differing));
    }
}

template <class Body>
void for_each_set(Body body) {
    const char* before = routines().name;
    for (const Routines& set : all_routines())
        if (set.is_supported()) {
            CHECK(use_routines(set.name));
            body();
        }
    CHECK(use_routines(before));
}

template <class T>
void compare_blocks(const KernelFunction& function, std::size_t n_features, double tolerance) {
    const std::size_t n = 21, m = 37;
    const auto x = random_bits(n * n_features, 1), z = random_bits(m * n_features, 2);
    const Points<T> rows(*BitMatrix::pack(dense(n_features, x)), function),
        columns(*BitMatrix::pack(dense(n_features, z)), function);
    const std::int32_t wanted[] = {20, 0, 7};
    // The second half of the columns as well, where a block does not begin at the first.
    for (const std::size_t first : {std::size_t{0}, 2 * kPanel<T>}) {
        const std::size_t stride = padded_to_panels<T>(m);
        std::vector<T> block(3 * stride, T(-7));
        kernel_block<T>(function, rows, wanted, columns, first, m, block.data(), stride);
        for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t j = first; j < m; ++j) {
                const double value = reference(function, n_features, x.data() + std::size_t(wanted[i]) * n_features,
                                               z.data() + j * n_features);
                CHECK_NEAR(double(block[i * stride + j - first]), value, tolerance * std::max(1.0, std::abs(value)));
            }
    }
}

}  // namespace

TEST(bit_kernels_agree_with_sums_over_features) {
    for_each_set([] {
        for (const std::size_t n_features : kFeatures)
            for (const KernelFunction& function : kFunctions) {
                compare_blocks<double>(function, n_features, 1e-14);
                compare_blocks<float>(function, n_features, 1e-6);
            }
    });
}

TEST(bits_are_packed_from_any_form_or_refused) {
    for (const std::size_t n_features : kFeatures) {
        const auto bytes = random_bits(5 * n_features, 3);
        std::vector<float> singles(bytes.begin(), bytes.end());
        std::vector<double> doubles(bytes.begin(), bytes.end()), values;
        std::vector<std::int64_t> indptr{0};
        std::vector<std::int32_t> indices;
        for (std::size_t i = 0; i < 5; ++i) {
            for (std::size_t f = 0; f < n_features; ++f)
                if (bytes[i * n_features + f] || f % 9 == 0) {  // some zeros are stored
                    indices.push_back(static_cast<std::int32_t>(f));
                    values.push_back(bytes[i * n_features + f]);
                }
            indptr.push_back(static_cast<std::int64_t>(indices.size()));
        }
        Matrix<double> compressed{5, n_features, values.data(), indptr.data(), indices.data()};
        const auto expected = BitMatrix::pack(dense(n_features, bytes));
        for (std::size_t i = 0; i < 5; ++i)
            for (std::size_t f = 0; f < 64 * expected->n_words; ++f)
                CHECK((expected->row(i)[f / 64] >> f % 64 & 1) == (f < n_features ? bytes[i * n_features + f] : 0));
        CHECK(BitMatrix::pack(dense(n_features, singles))->words == expected->words);
        CHECK(BitMatrix::pack(dense(n_features, doubles))->words == expected->words);
        CHECK(BitMatrix::pack(compressed)->words == expected->words);
        for (const double other : {0.5, -1.0, 2.0, std::nan("")}) {
            doubles.back() = values.back() = other;
            CHECK(!BitMatrix::pack(dense(n_features, doubles)));
            CHECK(!BitMatrix::pack(compressed));
        }
        auto larger = bytes;
        larger[0] = 2;
        CHECK(!BitMatrix::pack(dense(n_features, larger)));
    }
}

TEST(kernel_matrices_of_bits_are_those_of_numbers) {
    const auto compare = []<class T>(T tolerance) {
        for (const std::size_t n_features : {std::size_t{40}, std::size_t{255}, std::size_t{256}, std::size_t{384}})
            for (const KernelFunction& function : kFunctions) {
                const std::size_t n = 230;
                auto bytes = random_bits(n * n_features, 4);
                std::fill_n(bytes.begin(), 2 * n_features, std::uint8_t{1});  // the largest counts of both kinds
                std::fill_n(bytes.begin() + std::ptrdiff_t(2 * n_features), n_features, std::uint8_t{0});
                const std::vector<double> numbers(bytes.begin(), bytes.end());
                const Points<T> bits(*BitMatrix::pack(dense(n_features, bytes)), function),
                    points(dense(n_features, numbers), function, {}, true);
                StoredGram<T> of_bits(function, bits, 2, [] {}), of_numbers(function, points, 2, [] {});
                std::vector<T> diagonal(n);
                kernel_diagonal(function, bits, diagonal.data());
                CachedGram<T> cached(diagonal, 0, CachedGram<T>::from_points(function, bits));
                CHECK(cached.most_rows() == 64);
                CachedGram<T> counted(
                    diagonal, 0,
                    BitCounts::rows(std::make_shared<const BitCounts>(function, bits, 2, [] {}), bits.table()));
                ThreadTeam team(2);
                for (std::int32_t i = 0; i < std::int32_t(n); ++i) {
                    const T *a, *b, *c, *d;
                    of_bits.rows({&i, 1}, &a, team);
                    of_numbers.rows({&i, 1}, &b, team);
                    cached.rows({&i, 1}, &c, team);
                    counted.rows({&i, 1}, &d, team);
                    CHECK(a[i] == diagonal[std::size_t(i)]);
                    if (function.kind == KernelKind::rbf) CHECK(a[i] == T(1));
                    for (std::size_t j = 0; j < n; ++j) {
                        CHECK(a[j] == c[j] && a[j] == d[j]);
                        CHECK_NEAR(double(a[j]), double(b[j]), double(tolerance * std::max(T(1), std::abs(a[j]))));
                    }
                }
            }
    };
    compare(1e-13);
    compare(2e-5F);
}

TEST(cached_rows_are_the_ones_used_last) {
    constexpr std::size_t n = 100;
    std::vector<std::int32_t> filled;
    bool fails = false;
    CachedGram<double> gram(std::vector<double>(n, 1.0), 0,
                            [&](std::span<const std::int32_t> wanted, double* const* rows, ThreadTeam&) {
                                for (std::size_t i = 0; i < wanted.size(); ++i) {
                                    if (fails) throw std::runtime_error("no row");
                                    filled.push_back(wanted[i]);
                                    for (std::size_t j = 0; j < n; ++j)
                                        rows[i][j] = double(wanted[i]) + 1000.0 * double(j);
                                }
                            });
    ThreadTeam team(1);
    const auto ask = [&](const std::vector<std::int32_t>& points) {
        filled.clear();
        std::vector<const double*> rows(points.size());
        gram.rows(points, rows.data(), team);
        for (std::size_t i = 0; i < points.size(); ++i)
            for (std::size_t j = 0; j < n; ++j) CHECK(rows[i][j] == double(points[i]) + 1000.0 * double(j));
        return filled;
    };
    using List = std::vector<std::int32_t>;
    const auto contains = [](const List& list, std::int32_t point) {
        return std::find(list.begin(), list.end(), point) != list.end();
    };
    CHECK(gram.most_rows() == 64);
    for (std::int32_t i = 0; i < 64; ++i) CHECK(ask({i}) == List{i});
    CHECK(ask({0, 5}).empty());
    CHECK((ask({70, 70, 3, 71}) == List{70, 71}));  // takes the places of 1 and 2
    CHECK(ask({0, 5, 3, 4}).empty());
    CHECK((ask({1, 2}) == List{1, 2}));  // of 6 and 7
    CHECK((ask({6}) == List{6}));
    // A row that could not be computed is asked for again.
    fails = true;
    CHECK_THROWS(ask({80}), std::runtime_error);
    fails = false;
    CHECK((ask({80}) == List{80}));
    // As many as there are places, some of them there already.
    List many;
    for (std::int32_t i = 0; i < 64; ++i) many.push_back(99 - i);
    ask(many);
    CHECK(ask(many).empty());
    // Against the definition: the 64 distinct points that were asked for last.
    std::mt19937 random(0);
    List history = many;
    for (int step = 0; step < 2000; ++step) {
        List points;
        for (std::size_t k = random() % 9 + 1; k > 0; --k) points.push_back(static_cast<std::int32_t>(random() % n));
        List recent;  // newest first
        for (auto at = history.rbegin(); at != history.rend() && recent.size() < 64; ++at)
            if (!contains(recent, *at)) recent.push_back(*at);
        List missing;
        for (const std::int32_t point : points)
            if (!contains(recent, point) && !contains(missing, point)) missing.push_back(point);
        CHECK(ask(points) == missing);
        // Those that were there count as used before those that were not.
        for (const std::int32_t point : points)
            if (!contains(missing, point)) history.push_back(point);
        history.insert(history.end(), missing.begin(), missing.end());
    }
}
