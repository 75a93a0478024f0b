// Ascent in the dual variables of a working set, point by point; one vector holds classes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dualfield/vector/routines.hpp"
#include "wide.hpp"

namespace dualfield {
namespace {

// For given curvature s and pull u, the point p of the simplex with  s_y p_y + log p_y = u_y - mu  for all y: nested
// bracketing in double precision, for the rare case where Newton's method on all at once did not settle.
template <class T>
bool solve_block_slowly(std::size_t n_classes, const T* curvature, const T* pull, T* log_p) {
    double low = -1e300, high = 1e300, top = static_cast<double>(pull[0]);
    for (std::size_t y = 1; y < n_classes; ++y) top = std::fmax(top, static_cast<double>(pull[y]));
    double mu = top;
    for (int step = 0; step < 200; ++step) {
        double total = 0.0, slope = 0.0;
        for (std::size_t y = 0; y < n_classes; ++y) {
            const double s = static_cast<double>(curvature[y]), target = static_cast<double>(pull[y]) - mu;
            // z + s e^z = target is increasing and convex in z: Newton from above never overshoots.
            double z = s > 0.0 ? std::fmin(target, std::log(std::fmax(target, 1.0) / s + 1.0) + 1.0) : target;
            for (int inner = 0; inner < 100; ++inner) {
                const double e = std::exp(z), change = (z + s * e - target) / (1.0 + s * e);
                z -= change;
                if (std::fabs(change) < 1e-12) break;
            }
            z = std::fmax(z, static_cast<double>(kLogFloor<T>));
            log_p[y] = static_cast<T>(z);
            const double p = std::exp(z);
            total += p;
            slope += p / (1.0 + s * p);
        }
        if (std::fabs(total - 1.0) < 1e-6) return true;
        (total > 1.0 ? low : high) = mu;
        double next = mu + std::log(total) * total / slope;
        if (!(next > low && next < high))
            next = low > -1e299 && high < 1e299 ? 0.5 * (low + high)
                                                : mu + (total > 1.0 ? 1.0 : -1.0) * (1.0 + std::fabs(mu));
        if (next == mu) break;
        mu = next;
    }
    return false;
}

// NV vectors hold the classes; 0: as many as it takes.
template <class T, int NV>
struct Blocks {
    BlockRows<T>& in;
    const std::size_t n_vectors;
    T *pull, *r, *curvature, *p, *log_p;  // scratch rows

    DF_INLINE explicit Blocks(BlockRows<T>& rows)
        : in(rows),
          n_vectors(NV ? NV : rows.width / kWide<T>),
          pull(rows.scratch + (rows.n + 8) * rows.width),
          r(pull + rows.width),
          curvature(r + rows.width),
          p(curvature + rows.width),
          log_p(p + rows.width) {}

    template <class F>
    DF_INLINE void each(F f) const {
        for (std::size_t v = 0; v < (NV ? NV : n_vectors); ++v) f(v * kWide<T>);
    }

    // The best dual point of point l with all others fixed (Memisevic's block of one point, solved whole): Newton's
    // method in (log p, mu). Returns the predicted gain; change [width] gets the change of B_l if it moved.
    DF_INLINE double visit(std::size_t l, const T* scores, T* change, double skip, bool& moved) {
        const T weight = in.weights[l], diagonal = weight * in.kernel[l * in.kernel_stride + l];
        T* const old_p = in.p + l * in.width;
        T* const old_log = in.log_p + l * in.width;
        Wide<T> sum_w = {}, sum_wr = {};
        each([&](std::size_t v) {
            const Wide<T> s = wide(diagonal) * load(in.own + v), q = load(old_p + v), z = load(old_log + v);
            const Wide<T> score = load(scores + v), residual = score - z, w = q / (wide(T(1)) + s * q);
            store(curvature + v, s);
            store(pull + v, score + s * q);
            store(r + v, residual);
            sum_w += w;
            sum_wr += w * residual;
        });
        T mu = sum_of(sum_wr) / sum_of(sum_w);
        Wide<T> sum_gain = {}, urgent = wide(T(-1e30));
        each([&](std::size_t v) {
            const Wide<T> residual = load(r + v) - wide(mu), q = load(old_p + v);
            store(r + v, residual);
            // A class that is next to impossible now and should not be: its gain is not seen to second order.
            urgent = larger(select(less(wide(T(3)), residual), load(scores + v) - wide(mu), wide(T(-1e30))), urgent);
            sum_gain += q / (wide(T(1)) + load(curvature + v) * q) * residual * residual;
            store(p + v, q);
            store(log_p + v, load(old_log + v));
        });
        const double gain = 0.5 * static_cast<double>(weight) * static_cast<double>(sum_of(sum_gain));
        moved = false;
        if (!(gain >= skip) && !(largest_of(urgent) > T(-12))) return gain;
        ++in.n_visits;
        T total = T(1);
        bool settled = false;
        for (int step = 0; step < 12 && !settled; ++step) {
            Wide<T> longest = {}, sum_p = {};
            each([&](std::size_t v) {
                const Wide<T> q = load(p + v);
                const Wide<T> d = smaller(load(r + v) / (wide(T(1)) + load(curvature + v) * q), wide(T(3)));
                const Wide<T> z = larger(load(log_p + v) + d, wide(kLogFloor<T>));
                const Wide<T> next = exponential(z) * load(in.present + v);
                // A change of a probability that is next to nothing does not matter.
                longest = larger(absolute(d) * smaller(wide(T(1)), wide(T(1e5)) * (q + next)), longest);
                sum_p += next;
                store(log_p + v, z);
                store(p + v, next);
            });
            total = sum_of(sum_p);
            const T distance = largest_of(longest);
            if (!(distance < T(1e30))) break;
            settled = distance < T(0.25);
            if (settled) break;
            Wide<T> w_sum = {}, wr_sum = {};
            each([&](std::size_t v) {
                const Wide<T> q = load(p + v), s = load(curvature + v);
                const Wide<T> residual = load(pull + v) - s * q - load(log_p + v) - wide(mu),
                              w = q / (wide(T(1)) + s * q);
                store(r + v, residual);
                w_sum += w;
                wr_sum += w * residual;
            });
            const T step_mu = (sum_of(wr_sum) - (T(1) - total)) / sum_of(w_sum);
            mu += step_mu;
            each([&](std::size_t v) { store(r + v, load(r + v) - wide(step_mu)); });
        }
        if (!settled || !(std::fabs(total - T(1)) < T(0.3))) {
            ++in.n_fallbacks;
            if (!solve_block_slowly<T>(in.n_classes, curvature, pull, log_p)) return gain;
            Wide<T> sum_p = {};
            each([&](std::size_t v) {
                const Wide<T> next = exponential(load(log_p + v)) * load(in.present + v);
                store(p + v, next);
                sum_p += next;
            });
            total = sum_of(sum_p);
        }
        const Wide<T> log_total = wide(std::log(total)), inverse = wide(T(1) / total);
        Wide<T> sum_change = {};
        each([&](std::size_t v) {
            const Wide<T> next = load(p + v) * inverse, d = wide(weight) * (load(old_p + v) - next);
            store(change + v, d);
            sum_change += d;
            store(old_p + v, next);
            store(old_log + v, load(log_p + v) - log_total);
        });
        // Coefficients sum to zero; what rounding left goes to the label.
        change[in.labels[l]] -= sum_of(sum_change);
        each([&](std::size_t v) { store(change + v, load(change + v) * load(in.own + v)); });
        moved = true;
        return gain;
    }

    // scores_j += sum_q kernel[list[q]][j] change[q], for all j; M changes at a time.
    template <int M>
    DF_INLINE void spread(const std::size_t* list, const T* change) {
        const T* kernel[M];
        for (int q = 0; q < M; ++q) kernel[q] = in.kernel + list[q] * in.kernel_stride;
        if constexpr (NV > 0 && NV * M <= 12) {
            Wide<T> d[M][NV];
            for (int q = 0; q < M; ++q)
                for (int v = 0; v < NV; ++v)
                    d[q][v] = load(change + static_cast<std::size_t>(q) * in.width + v * kWide<T>);
            for (std::size_t j = 0; j < in.n; ++j) {
                T* row = in.scores + j * in.width;
                for (int v = 0; v < NV; ++v) {
                    Wide<T> x = load(row + v * kWide<T>);
                    for (int q = 0; q < M; ++q) x += wide(kernel[q][j]) * d[q][v];
                    store(row + v * kWide<T>, x);
                }
            }
        } else {
            for (std::size_t j = 0; j < in.n; ++j) {
                T* row = in.scores + j * in.width;
                each([&](std::size_t v) {
                    Wide<T> x = load(row + v);
                    for (int q = 0; q < M; ++q)
                        x += wide(kernel[q][j]) * load(change + static_cast<std::size_t>(q) * in.width + v);
                    store(row + v, x);
                });
            }
        }
    }

    // One cyclic pass. Points are visited in groups of eight, each seeing the changes of the ones before it; the rest
    // of the working set learns of all eight at once.
    DF_CASE double pass(double skip) {
        constexpr std::size_t kGroup = 8;
        double gain = 0.0;
        T* const own_scores = in.scratch;
        T* const changes = in.scratch + in.width;
        for (std::size_t first = 0; first < in.n; first += kGroup) {
            std::size_t list[kGroup], n_moved = 0;
            for (std::size_t l = first; l < in.n && l < first + kGroup; ++l) {
                std::memcpy(own_scores, in.scores + l * in.width, in.width * sizeof(T));
                const T* kernel = in.kernel + l * in.kernel_stride;
                for (std::size_t q = 0; q < n_moved; ++q)
                    each([&](std::size_t v) {
                        store(own_scores + v,
                              load(own_scores + v) + wide(kernel[list[q]]) * load(changes + q * in.width + v));
                    });
                bool moved;
                gain += visit(l, own_scores, changes + n_moved * in.width, skip, moved);
                if (moved) list[n_moved++] = l;
            }
            if (n_moved == 0) continue;
            const std::size_t filled = n_moved <= 2 ? 2 : n_moved <= 4 ? 4 : 8;
            for (std::size_t q = n_moved; q < filled; ++q) {
                list[q] = list[0];
                std::memset(changes + q * in.width, 0, in.width * sizeof(T));
            }
            if (filled == 2)
                spread<2>(list, changes);
            else if (filled == 4)
                spread<4>(list, changes);
            else
                spread<8>(list, changes);
        }
        return gain;
    }
};

template <class T>
double block_pass(BlockRows<T>& rows, double skip) {
    switch (rows.width / kWide<T>) {
        case 1:
            return Blocks<T, 1>(rows).pass(skip);
        case 2:
            return Blocks<T, 2>(rows).pass(skip);
        case 3:
            return Blocks<T, 3>(rows).pass(skip);
        case 4:
            return Blocks<T, 4>(rows).pass(skip);
        default:
            return Blocks<T, 0>(rows).pass(skip);
    }
}

}  // namespace
}  // namespace dualfield
