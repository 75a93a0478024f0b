// What a change does to weights, and how much their penalty grows by it: one number, or four at a time.
#pragma once

#include <cstddef>

#include "dualfield/scores/shrinkage.hpp"
#include "vector.hpp"

namespace dualfield {
namespace {

// w += change; |w|^2 / 2 grows by change * (w before + change / 2).
struct MoveWeights {
    static constexpr bool kDual = false;

    DF_INLINE Vec operator()(double* at, Vec change) const {
        const Vec before = load(at);
        store(at, before + change);
        return change * (before + splat(0.5) * change);
    }
    DF_INLINE double operator()(double* at, double change) const {
        const double before = *at;
        *at = before + change;
        return change * (before + 0.5 * change);
    }
};

// v += change, and w follows; the conjugate, ridge / 2 |w|^2, grows.
struct MoveAndShrink {
    static constexpr bool kDual = true;
    std::ptrdiff_t to_dual;
    double lasso, inverse, half_ridge;

    explicit MoveAndShrink(const Shrinkage& s)
        : to_dual(s.to_dual), lasso(s.lasso), inverse(1.0 / s.ridge), half_ridge(0.5 * s.ridge) {}

    DF_INLINE double* dual(double* weights) const { return weights + to_dual; }
    DF_INLINE Vec operator()(double* at, Vec change) const {
        const Vec v = load(dual(at)) + change, before = load(at);
        store(dual(at), v);
        // What is left of v outside [-lasso, lasso].
        const Vec w = splat(inverse) * (v - larger(splat(-lasso), smaller(splat(lasso), v)));
        store(at, w);
        return splat(half_ridge) * (w - before) * (w + before);
    }
    DF_INLINE double operator()(double* at, double change) const {
        const double v = *dual(at) + change, before = *at;
        *dual(at) = v;
        const double inside = v < lasso ? v : lasso;
        const double w = inverse * (v - (inside > -lasso ? inside : -lasso));
        *at = w;
        return half_ridge * (w - before) * (w + before);
    }
};

template <class Run>
DF_INLINE double with_moves(const Shrinkage* shrinkage, Run run) {
    return shrinkage ? run(MoveAndShrink(*shrinkage)) : run(MoveWeights());
}

}  // namespace
}  // namespace dualfield
