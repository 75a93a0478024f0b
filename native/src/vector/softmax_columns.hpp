// Sums over all points of a softmax problem, one vector holding neighbouring points.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "dualfield/vector/routines.hpp"
#include "wide.hpp"

namespace dualfield {
namespace {

// Loads that stop at the end of the data; the rest is filled.
template <class T>
DF_INLINE Wide<T> load_columns(const T* p, std::size_t n, T rest) {
    if (n >= kWide<T>) return load(p);
    Wide<T> v = wide(rest);
    for (std::size_t lane = 0; lane < n; ++lane) v[lane] = p[lane];
    return v;
}

template <class T>
DF_INLINE void store_columns(T* p, std::size_t n, Wide<T> v) {
    if (n >= kWide<T>) return store(p, v);
    for (std::size_t lane = 0; lane < n; ++lane) p[lane] = v[lane];
}

// log(1 + x) for x >= 0, lane by lane; small values need no call.
template <class T>
DF_INLINE Wide<T> log_one_plus(Wide<T> x) {
    Wide<T> y = x - wide(T(0.5)) * x * x;
    for (std::size_t lane = 0; lane < kWide<T>; ++lane)
        if (!(x[lane] < (sizeof(T) == 4 ? T(1e-3) : T(1e-6)))) y[lane] = std::log1p(x[lane]);
    return y;
}

// log sum exp(s - mean) for a point whose p is so far off that e^rho would overflow.
template <class T>
T far_divergence(const DualColumns<T>& in, std::size_t i, T mean) {
    double top = -1e300, total = 0.0;
    for (int pass = 0; pass < 2; ++pass)
        for (std::size_t c = 0; c < in.n_classes; ++c) {
            const double s = static_cast<double>(in.scores[c * in.stride + i]) + static_cast<double>(in.bias[c]);
            if (pass == 0) top = std::fmax(top, s);
            if (pass == 1) total += std::exp(s - top);
        }
    return static_cast<T>(top + std::log(total) - static_cast<double>(mean));
}

// KL(p || softmax(s)) = log sum p e^rho with rho = s - log p, centred so that sum p rho = 0: log(1 + sum p phi(rho)),
// phi(x) = e^x - 1 - x. Every term is positive, so that nothing cancels however small the divergence.
template <class T>
void dual_terms(const DualColumns<T>& in, std::size_t first, std::size_t last, DualSums& sums) {
    constexpr std::size_t kKept = 64;  // classes whose exponentials are not computed twice
    Wide<T> kept[kKept];
    Vec gap = {}, entropy = {}, alignment = {};
    for (std::size_t j = first; j < last; j += kWide<T>) {
        const std::size_t n = last - j;
        const Wide<T> weight = load_columns(in.weights + j, n, T(0));
        Wide<T> mean = {}, total = {}, minus_entropy = {}, mean_score = {}, label_score = {};
        for (std::size_t c = 0; c < in.n_classes; ++c) {
            const std::size_t at = c * in.stride + j;
            const Wide<T> p = load_columns(in.p + at, n, T(0)), log_p = load_columns(in.log_p + at, n, T(0)),
                          score = load_columns(in.scores + at, n, T(0));
            mean += p * (score + wide(in.bias[c]) - log_p);
            total += p;
            minus_entropy += p * log_p;
            mean_score += p * score;
        }
        for (std::size_t lane = 0; lane < kWide<T> && lane < n; ++lane)
            label_score[lane] = in.scores[static_cast<std::size_t>(in.labels[j + lane]) * in.stride + j + lane];
        mean /= larger(total, wide(T(1e-30)));
        Wide<T> rest = {}, steepest = {};
        for (std::size_t c = 0; c < in.n_classes; ++c) {
            const std::size_t at = c * in.stride + j;
            const Wide<T> p = load_columns(in.p + at, n, T(0)), log_p = load_columns(in.log_p + at, n, T(0)),
                          score = load_columns(in.scores + at, n, T(0));
            const Wide<T> rho = score + wide(in.bias[c]) - log_p - mean, near = smaller(rho, wide(T(60)));
            const Wide<T> remainder = exponential_remainder<T>(near);
            steepest = larger(rho, steepest);
            rest += p * remainder;
            if (c < kKept) kept[c] = p * (remainder + near);  // p (e^rho - 1)
        }
        if (sums.shifts) {
            const Wide<T> scale = weight / (wide(T(1)) + rest);
            for (std::size_t c = 0; c < in.n_classes; ++c) {
                const std::size_t at = c * in.stride + j;
                const Wide<T> p = load_columns(in.p + at, n, T(0));
                Wide<T> grown;
                if (c < kKept) {
                    grown = kept[c];
                } else {
                    const Wide<T> rho = smaller(load_columns(in.scores + at, n, T(0)) + wide(in.bias[c]) -
                                                    load_columns(in.log_p + at, n, T(0)) - mean,
                                                wide(T(60)));
                    grown = p * (exponential_remainder<T>(rho) + rho);
                }
                // p (e^rho / (1 + rest) - 1) without the difference of ones.
                sums.shifts[c] += sum_of(as_doubles(scale * (grown - p * rest)));
            }
        }
        Wide<T> term = weight * log_one_plus<T>(rest);
        if (largest_of(steepest) > T(60))
            for (std::size_t lane = 0; lane < kWide<T> && lane < n; ++lane)
                if (steepest[lane] > T(60)) term[lane] = weight[lane] * far_divergence(in, j + lane, mean[lane]);
        store_columns(in.terms + j, n, term);
        gap += as_doubles(term);
        entropy -= as_doubles(weight * minus_entropy);
        alignment += as_doubles(weight * (label_score * total - mean_score));
    }
    sums.gap += sum_of(gap);
    sums.entropy += sum_of(entropy);
    sums.alignment += sum_of(alignment);
}

template <class T>
void softmax_columns(const SoftmaxColumns<T>& in, std::size_t first, std::size_t last, SoftmaxSums& sums) {
    for (std::size_t j = first; j < last; j += kWide<T>) {
        const std::size_t n = last - j;
        Wide<T> top = in.pinned ? Wide<T>{} : wide(T(-1e30));
        for (std::size_t r = 0; r < in.n_rows; ++r)
            top = larger(load_columns(in.scores + r * in.stride + j, n, T(0)) + wide(in.bias[r]), top);
        Wide<T> total = in.pinned ? exponential(-top) : Wide<T>{};
        for (std::size_t r = 0; r < in.n_rows; ++r) {
            const std::size_t at = r * in.stride + j;
            const Wide<T> e = exponential(load_columns(in.scores + at, n, T(0)) + wide(in.bias[r]) - top);
            store_columns(in.p + at, n, e);
            total += e;
        }
        const Wide<T> inverse = wide(T(1)) / total, weight = load_columns(in.weights + j, n, T(0));
        for (std::size_t r = 0; r < in.n_rows; ++r) {
            const std::size_t at = r * in.stride + j;
            const Wide<T> p = load_columns(in.p + at, n, T(0)) * inverse;
            store_columns(in.p + at, n, p);
            if (sums.slopes) sums.slopes[r] += sum_of(as_doubles(p * weight));
        }
        for (std::size_t lane = 0; lane < kWide<T> && lane < n; ++lane) {
            const std::size_t row = static_cast<std::size_t>(in.labels[j + lane]) - (in.pinned ? 1 : 0);
            const bool zero = in.pinned && in.labels[j + lane] == 0;
            const double score =
                zero ? 0.0
                     : static_cast<double>(in.scores[row * in.stride + j + lane]) + static_cast<double>(in.bias[row]);
            sums.loss += static_cast<double>(weight[lane]) *
                         (std::log(static_cast<double>(total[lane])) + static_cast<double>(top[lane]) - score);
            if (sums.slopes && !zero) sums.slopes[row] -= static_cast<double>(weight[lane]);
        }
    }
}

template <class T>
void curvature_product(const CurvatureColumns<T>& in, std::size_t first, std::size_t last, CurvatureSums& sums) {
    Vec product = {};
    for (std::size_t j = first; j < last; j += kWide<T>) {
        const std::size_t n = last - j;
        Wide<T> mean = {};
        for (std::size_t r = 0; r < in.n_rows; ++r) {
            const std::size_t at = r * in.stride + j;
            Wide<T> v = load_columns(in.values + at, n, T(0));
            if (in.shift) v -= wide(in.shift[r]);
            mean += load_columns(in.p + at, n, T(0)) * v;
        }
        const Wide<T> weight = load_columns(in.weights + j, n, T(0));
        Wide<T> here = {};
        for (std::size_t r = 0; r < in.n_rows; ++r) {
            const std::size_t at = r * in.stride + j;
            const Wide<T> value = load_columns(in.values + at, n, T(0));
            const Wide<T> v = in.shift ? value - wide(in.shift[r]) : value;
            const Wide<T> bent = weight * load_columns(in.p + at, n, T(0)) * (v - mean);
            if (sums.sums) sums.sums[r] += sum_of(as_doubles(bent));
            if (in.out) {
                const Wide<T> out = load_columns(in.direction + at, n, T(0)) + bent;
                store_columns(in.out + at, n, out);
                here += value * out;
            }
        }
        product += as_doubles(here);
    }
    sums.product += sum_of(product);
}

template <class T>
void class_moments(const T* p, const T* weights, std::size_t n_rows, std::size_t stride, std::size_t first,
                   std::size_t last, double* moments) {
    const std::size_t whole = first + (last - first) / kWide<T> * kWide<T>;
    for (std::size_t r = 0; r < n_rows; ++r)
        for (std::size_t s = r; s < n_rows; ++s) {
            const T *a = p + r * stride, *b = p + s * stride;
            Wide<T> sum = {};
            for (std::size_t j = first; j < whole; j += kWide<T>) sum += load(weights + j) * load(a + j) * load(b + j);
            double total = sum_of(as_doubles(sum));
            for (std::size_t j = whole; j < last; ++j) total += static_cast<double>(weights[j] * a[j] * b[j]);
            moments[r * n_rows + s] += total;
        }
}

}  // namespace
}  // namespace dualfield
