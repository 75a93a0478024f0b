// One number, or that of eight examples side by side, and what is done with tables of them along the walks of a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dualfield/structures/graphs/elimination.hpp"
#include "dualfield/structures/graphs/junction.hpp"
#include "vector.hpp"

namespace dualfield {
namespace {

// What vectors and numbers do alike.
template <class V>
struct Lane;

template <>
struct Lane<double> {
    static constexpr std::size_t kCount = 1;
    static DF_INLINE double of(double x) { return x; }
    static DF_INLINE double at(const double* p) { return *p; }
    static DF_INLINE void put(double* p, double v) { *p = v; }
    static DF_INLINE double larger_of(double a, double b) { return a > b ? a : b; }
    static DF_INLINE double smaller_of(double a, double b) { return a < b ? a : b; }
    static DF_INLINE double where_less(double a, double b, double yes, double no) { return a < b ? yes : no; }
    static DF_INLINE bool any_at_most(double v, double bound) { return v <= bound; }
    static DF_INLINE double get(double v, std::size_t) { return v; }
    static DF_INLINE double exponent(double v) {
        std::int64_t bits;
        std::memcpy(&bits, &v, sizeof bits);
        return static_cast<double>((bits >> 52) - 1023);
    }
    static DF_INLINE double mantissa(double v) {
        std::int64_t bits;
        std::memcpy(&bits, &v, sizeof bits);
        bits = (bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000;
        std::memcpy(&v, &bits, sizeof bits);
        return v;
    }
};

// Two vectors: half as many steps through a plan as with one, and more that does not wait for each other.
struct Twin {
    Vec a, b;
};
DF_INLINE Twin operator+(Twin x, Twin y) {
    return {x.a + y.a, x.b + y.b};
}
DF_INLINE Twin operator-(Twin x, Twin y) {
    return {x.a - y.a, x.b - y.b};
}
DF_INLINE Twin operator*(Twin x, Twin y) {
    return {x.a * y.a, x.b * y.b};
}
DF_INLINE Twin operator/(Twin x, Twin y) {
    return {x.a / y.a, x.b / y.b};
}

template <>
struct Lane<Twin> {
    static constexpr std::size_t kCount = kSideBySide;
    static DF_INLINE Twin of(double x) { return {splat(x), splat(x)}; }
    static DF_INLINE Twin at(const double* p) { return {load(p), load(p + kLanes)}; }
    static DF_INLINE void put(double* p, Twin v) {
        store(p, v.a);
        store(p + kLanes, v.b);
    }
    static DF_INLINE Twin larger_of(Twin x, Twin y) { return {larger(x.a, y.a), larger(x.b, y.b)}; }
    static DF_INLINE Twin smaller_of(Twin x, Twin y) { return {smaller(x.a, y.a), smaller(x.b, y.b)}; }
    static DF_INLINE Twin where_less(Twin x, Twin y, Twin yes, Twin no) {
        return {select(less(x.a, y.a), yes.a, no.a), select(less(x.b, y.b), yes.b, no.b)};
    }
    static DF_INLINE bool any_at_most(Twin v, double bound) {
        return any_set(at_most(v.a, splat(bound)) | at_most(v.b, splat(bound)));
    }
    static DF_INLINE double get(Twin v, std::size_t lane) { return lane < kLanes ? v.a[lane] : v.b[lane - kLanes]; }
    // Of positive numbers that are not denormal: the exponent, and the mantissa in [1, 2).
    static DF_INLINE Twin exponent(Twin v) {
        return {__builtin_convertvector((bits_of(v.a) >> 52) - 1023, Vec),
                __builtin_convertvector((bits_of(v.b) >> 52) - 1023, Vec)};
    }
    static DF_INLINE Twin mantissa(Twin v) {
        return {from_bits((bits_of(v.a) & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000),
                from_bits((bits_of(v.b) & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000)};
    }
};

// Calls body(cell, at) for every block of rows and runs of a walk.
template <class Body>
DF_INLINE void for_blocks(const Walk& walk, Body body) {
    const std::size_t block = walk.rows.size * walk.run.size, n_outer = walk.outer.size();
    if (n_outer == 0) {
        body(std::size_t{0}, std::size_t{0});
        return;
    }
    std::size_t count[Walk::kMostLoops] = {};
    const Walk::Loop* outer = walk.outer.data();
    const Walk::Loop last = outer[n_outer - 1];
    for (std::size_t cell = 0, at = 0;;) {
        for (std::size_t i = 0; i < last.size; ++i, cell += block) body(cell, at + i * last.stride);
        std::size_t axis = n_outer - 1;
        for (;;) {
            if (axis == 0) return;
            --axis;
            at += outer[axis].stride;
            if (++count[axis] < outer[axis].size) break;
            at -= outer[axis].size * outer[axis].stride;
            count[axis] = 0;
        }
    }
}

struct Assign {
    template <class V>
    static DF_INLINE V of(V, V b) {
        return b;
    }
};
struct Times {
    template <class V>
    static DF_INLINE V of(V a, V b) {
        return a * b;
    }
};
struct Plus {
    template <class V>
    static DF_INLINE V of(V a, V b) {
        return a + b;
    }
};
struct Most {
    template <class V>
    static DF_INLINE V of(V a, V b) {
        return Lane<V>::larger_of(a, b);
    }
};

// own[cell] = Op(own[cell], other[place]); other has no axis for lanes where Shared.
template <class V, class Op, bool Shared>
DF_CASE void overlay(const Walk& walk, double* own, const double* other) {
    using L = Lane<V>;
    const std::size_t n = walk.run.size, n_rows = walk.rows.size, step = walk.run.stride, row_step = walk.rows.stride;
    const auto value = [&](std::size_t place)
                           DF_INLINE_LAMBDA { return Shared ? L::of(other[place]) : L::at(other + L::kCount * place); };
    const auto take = [&](std::size_t cell, V v) DF_INLINE_LAMBDA {
        double* to = own + L::kCount * cell;
        L::put(to, Op::of(L::at(to), v));
    };
    if (step == 0) {
        for_blocks(walk, [&](std::size_t cell, std::size_t at) DF_INLINE_LAMBDA {
            for (std::size_t r = 0; r < n_rows; ++r, cell += n) {
                const V v = value(at + r * row_step);
                for (std::size_t k = 0; k < n; ++k) take(cell + k, v);
            }
        });
    } else if (step == 1) {
        for_blocks(walk, [&](std::size_t cell, std::size_t at) DF_INLINE_LAMBDA {
            for (std::size_t r = 0; r < n_rows; ++r, cell += n) {
                const std::size_t from = at + r * row_step;
                DF_INDEPENDENT
                for (std::size_t k = 0; k < n; ++k) take(cell + k, value(from + k));
            }
        });
    } else {
        for_blocks(walk, [&](std::size_t cell, std::size_t at) DF_INLINE_LAMBDA {
            for (std::size_t r = 0; r < n_rows; ++r, cell += n)
                for (std::size_t k = 0; k < n; ++k) take(cell + k, value(at + r * row_step + k * step));
        });
    }
}

// other[place] = Op(other[place], own[cell]) over all cells, from a start that changes nothing.
template <class V, class Op>
DF_CASE void gather(const Walk& walk, const double* own, std::size_t size, double start, double* other) {
    using L = Lane<V>;
    const std::size_t n = walk.run.size, n_rows = walk.rows.size, step = walk.run.stride, row_step = walk.rows.stride;
    for (std::size_t j = 0; j < size; ++j) L::put(other + L::kCount * j, L::of(start));
    const auto cell_of = [&](std::size_t cell) DF_INLINE_LAMBDA { return L::at(own + L::kCount * cell); };
    const auto take = [&](std::size_t place, V v) DF_INLINE_LAMBDA {
        double* to = other + L::kCount * place;
        L::put(to, Op::of(L::at(to), v));
    };
    if (step == 0) {
        for_blocks(walk, [&](std::size_t cell, std::size_t at) DF_INLINE_LAMBDA {
            for (std::size_t r = 0; r < n_rows; ++r, cell += n) {
                // Four sums that do not wait for each other.
                V part[4] = {L::of(start), L::of(start), L::of(start), L::of(start)};
                std::size_t k = 0;
                for (; k + 4 <= n; k += 4)
                    for (std::size_t i = 0; i < 4; ++i) part[i] = Op::of(part[i], cell_of(cell + k + i));
                for (; k < n; ++k) part[0] = Op::of(part[0], cell_of(cell + k));
                take(at + r * row_step, Op::of(Op::of(part[0], part[1]), Op::of(part[2], part[3])));
            }
        });
    } else if (L::kCount > 1 && step == 1 && row_step == 0 && n <= 4) {
        // All rows go to the same few places: these stay in registers.
        for_blocks(walk, [&](std::size_t cell, std::size_t at) DF_INLINE_LAMBDA {
            double* to = other + L::kCount * at;
            V sum[4] = {L::at(to), L::at(to), L::at(to), L::at(to)};
            for (std::size_t k = 1; k < n; ++k) sum[k] = L::at(to + L::kCount * k);
            if (n == 2) {
                for (std::size_t r = 0; r < n_rows; ++r, cell += 2)
                    for (std::size_t k = 0; k < 2; ++k) sum[k] = Op::of(sum[k], cell_of(cell + k));
            } else if (n == 3) {
                for (std::size_t r = 0; r < n_rows; ++r, cell += 3)
                    for (std::size_t k = 0; k < 3; ++k) sum[k] = Op::of(sum[k], cell_of(cell + k));
            } else {
                for (std::size_t r = 0; r < n_rows; ++r, cell += n)
                    for (std::size_t k = 0; k < n; ++k) sum[k] = Op::of(sum[k], cell_of(cell + k));
            }
            for (std::size_t k = 0; k < n; ++k) L::put(to + L::kCount * k, sum[k]);
        });
    } else if (step == 1) {
        for_blocks(walk, [&](std::size_t cell, std::size_t at) DF_INLINE_LAMBDA {
            for (std::size_t r = 0; r < n_rows; ++r, cell += n) {
                const std::size_t to = at + r * row_step;
                DF_INDEPENDENT
                for (std::size_t k = 0; k < n; ++k) take(to + k, cell_of(cell + k));
            }
        });
    } else {
        for_blocks(walk, [&](std::size_t cell, std::size_t at) DF_INLINE_LAMBDA {
            for (std::size_t r = 0; r < n_rows; ++r, cell += n)
                for (std::size_t k = 0; k < n; ++k) take(at + r * row_step + k * step, cell_of(cell + k));
        });
    }
}

// out[cell] = Op(before[cell / repeats], other[place]), where the run of the walk is the repeats.
template <class V, class Op, bool Shared>
DF_CASE void expand(const Walk& walk, const double* before, const double* other, double* out) {
    using L = Lane<V>;
    const std::size_t n = walk.run.size, n_rows = walk.rows.size, step = walk.run.stride, row_step = walk.rows.stride;
    for_blocks(walk, [&](std::size_t cell, std::size_t at) DF_INLINE_LAMBDA {
        for (std::size_t r = 0; r < n_rows; ++r, before += L::kCount) {
            const V v = L::at(before);
            const std::size_t from = at + r * row_step;
            double* to = out + L::kCount * (cell + r * n);
            for (std::size_t k = 0; k < n; ++k) {
                const std::size_t place = from + k * step;
                L::put(to + L::kCount * k, Op::of(v, Shared ? L::of(other[place]) : L::at(other + L::kCount * place)));
            }
        }
    });
}

// out[cell] = before[cell / repeats].
template <class V>
DF_CASE void repeat(const double* before, std::size_t n_before, std::size_t repeats, double* out) {
    using L = Lane<V>;
    for (std::size_t p = 0; p < n_before; ++p) {
        const V v = L::at(before + L::kCount * p);
        for (std::size_t k = 0; k < repeats; ++k, out += L::kCount) L::put(out, v);
    }
}

// out[p] = the combination of in[p][repeats].
template <class V, class Op>
DF_CASE void drop_axes(const double* in, std::size_t n, std::size_t repeats, double start, double* out) {
    using L = Lane<V>;
    for (std::size_t p = 0; p < n; ++p, out += L::kCount) {
        // Four parts that do not wait for each other.
        V part[4] = {L::of(start), L::of(start), L::of(start), L::of(start)};
        std::size_t k = 0;
        for (; k + 4 <= repeats; k += 4)
            for (std::size_t i = 0; i < 4; ++i, in += L::kCount) part[i] = Op::of(part[i], L::at(in));
        for (; k < repeats; ++k, in += L::kCount) part[0] = Op::of(part[0], L::at(in));
        L::put(out, Op::of(Op::of(part[0], part[1]), Op::of(part[2], part[3])));
    }
}

}  // namespace
}  // namespace dualfield
