// Messages between neighbours as sums of products, see MessageTask.
#pragma once

#include "dualfield/vector/routines.hpp"
#include "rows.hpp"
#include "vector.hpp"

namespace dualfield {
namespace {

// log(x) to within two units in the last place of the larger of it and 1, for x that is positive and not denormal.
DF_INLINE Vec logarithm(Vec x) {
    // x = 2^e m with m between the roots of 1/2 and 2. The exponent is read with its bias, which leaves it positive.
    constexpr std::int64_t kOne = 0x3FF0000000000000, kRootOfHalf = 0x3FE6A09E667F3BCD, kShifted = 0x4330000000000000;
    const IntVec all = bits_of(x), one = {kOne, kOne, kOne, kOne};
    const IntVec root = {kRootOfHalf, kRootOfHalf, kRootOfHalf, kRootOfHalf};
    const IntVec e = (all + (one - root)) >> 52;
    const Vec m = from_bits(all - (e << 52) + one);
    // 2^52 + e in the bits of a double: no conversion is needed.
    const IntVec far = {kShifted, kShifted, kShifted, kShifted};
    const Vec n = from_bits(e | far) - splat(4503599627370496.0 + 1023.0);
    // log(1 + f) = 2 artanh(s) = 2 s + 2 s z (1/3 + z/5 + ...), and 2 s = f - s f; z is at most 0.03.
    const Vec f = m - splat(1.0), s = f / (splat(2.0) + f), z = s * s, z2 = z * z, z4 = z2 * z2;
    const Vec p01 = splat(1.0 / 3) + splat(1.0 / 5) * z, p23 = splat(1.0 / 7) + splat(1.0 / 9) * z;
    const Vec p45 = splat(1.0 / 11) + splat(1.0 / 13) * z, p67 = splat(1.0 / 15) + splat(1.0 / 17) * z;
    const Vec p89 = splat(1.0 / 19) + splat(1.0 / 21) * z;
    const Vec p = (p01 + p23 * z2) + ((p45 + p67 * z2) + p89 * z4) * z4;
    const Vec rest = s * (f - splat(2.0) * z * p);
    // ln 2 in two parts, the first with trailing zeros, so that n times it is exact.
    return n * splat(6.93147180369123816490e-01) - ((rest - n * splat(1.90821492927058770002e-10)) - f);
}

double entropy(const double* p, std::size_t n) {
    Vec total[1] = {splat(0.0)};
    for (std::size_t i = 0; i < n; i += kLanes) {
        const Vec v = i + kLanes <= n ? load(p + i) : load_first(p + i, n - i, 0.0);
        const auto is_none = less(v, splat(1e-300));
        total[0] -= select(is_none, splat(0.0), v * logarithm(select(is_none, splat(1.0), v)));
    }
    double sum;
    reduce<Add, 1>(total, &sum);
    return sum;
}

bool send_sums(MessageTask& task) {
    const std::size_t n = task.n_labels, width = padded(n);
    Vec top[1] = {splat(-kInfinity)};
    for (std::size_t i = 0; i < width; i += kLanes) top[0] = larger(load(task.cavity + i), top[0]);
    reduce<Larger, 1>(top, &task.shift);
    if (!(task.shift > -kInfinity)) return false;
    for (std::size_t i = 0; i < width; i += kLanes) {
        const Vec x = load(task.cavity + i) - splat(task.shift);
        // What is smaller would make denormal products.
        store(task.factors + i, select(less(x, splat(-690.0)), splat(0.0), exponential(x)));
    }
    Vec least = splat(kInfinity), highest[1] = {splat(-kInfinity)};
    for (std::size_t i = 0; i < width; i += kLanes) {
        // Two sums, so that few products wait for each other.
        Vec even = splat(0.0), odd = splat(0.0);
        const double* column = task.table + i;
        std::size_t a = 0;
        for (; a + 1 < n; a += 2) {
            even += splat(task.factors[a]) * load(column + a * width);
            odd += splat(task.factors[a + 1]) * load(column + (a + 1) * width);
        }
        if (a < n) even += splat(task.factors[a]) * load(column + a * width);
        const Vec sum = even + odd;
        least = smaller(sum, least);
        const Vec value = logarithm(sum);
        highest[0] = larger(value, highest[0]);
        store(task.sums + i, value);
    }
    if (any_set(less(least, splat(MessageTask::kSmallSum)))) return false;
    reduce<Larger, 1>(highest, &task.highest);
    for (std::size_t i = 0; i < width; i += kLanes) store(task.sums + i, load(task.sums + i) - splat(task.highest));
    write_row(task.out, task.sums, n);
    return true;
}

}  // namespace
}  // namespace dualfield
