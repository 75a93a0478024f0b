// The passes of junction.hpp: for one example, V = double, or for eight side by side, V = Twin.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "dualfield/structures/junction.hpp"
#include "interleaved.hpp"
#include "rows.hpp"
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

// What was read of a factor, in each lane.
template <class V>
struct FactorBounds {
    V highest, lowest, strange;  // the lowest may be forbidden; strange: 1 where a number is NaN or +inf

    // Written out: what the compiler writes itself is not for the instruction set.
    DF_INLINE FactorBounds()
        : highest(Lane<V>::of(-kInfinity)), lowest(Lane<V>::of(kInfinity)), strange(Lane<V>::of(0.0)) {}
    DF_INLINE void see(V x) {
        using L = Lane<V>;
        highest = L::larger_of(x, highest);
        lowest = L::smaller_of(x, lowest);
        strange = L::where_less(x, L::of(kInfinity), strange, L::of(1.0));
    }
    // Once all is seen: what is forbidden does not count as lowest.
    DF_INLINE void pass_over_forbidden(const double* x, std::size_t cells) {
        using L = Lane<V>;
        if (!L::any_at_most(lowest, -kInfinity)) return;
        lowest = L::of(kInfinity);
        for (std::size_t c = 0; c < cells; ++c) {
            const V v = L::at(x + L::kCount * c);
            lowest = L::smaller_of(L::where_less(L::of(-kInfinity), v, v, L::of(kInfinity)), lowest);
        }
        lowest = L::smaller_of(lowest, highest);
        highest = L::where_less(L::of(-kInfinity), highest, highest, L::of(0.0));
        lowest = L::where_less(L::of(-kInfinity), lowest, lowest, L::of(0.0));
    }
    // 1 where a score is so large that sums may overflow.
    DF_INLINE V huge() const {
        using L = Lane<V>;
        const V most = L::of(JunctionTask::kHuge), one = L::of(1.0), none = L::of(0.0);
        return L::larger_of(L::where_less(most, highest, one, none), L::where_less(lowest, none - most, one, none));
    }
};

template <std::size_t First>
DF_INLINE void read_lanes(const FactorScores& factor, std::size_t c, std::size_t left, Vec (&columns)[kLanes]) {
    Vec rows[kLanes];
    const bool has_own = factor.own[0], has_shared = factor.shared[0];
    for (std::size_t l = 0; l < kLanes; ++l) {
        const auto four = [&](const double* p)
                              DF_INLINE_LAMBDA { return left >= kLanes ? load(p + c) : load_first(p + c, left, 0.0); };
        rows[l] = has_own ? four(factor.own[First + l]) : Vec{};
        if (has_shared) rows[l] = has_own ? rows[l] + four(factor.shared[First + l]) : four(factor.shared[First + l]);
    }
    transpose(rows, columns);
}

// x [cells][lanes] = own + shared.
template <class V>
DF_INLINE FactorBounds<V> read_factor(const FactorScores& factor, std::size_t cells, double* x) {
    FactorBounds<V> bounds;
    if constexpr (std::is_same_v<V, double>) {
        const double *own = factor.own[0], *shared = factor.shared[0];
        for (std::size_t c = 0; c < cells; ++c) {
            x[c] = own && shared ? own[c] + shared[c] : own ? own[c] : shared ? shared[c] : 0.0;
            bounds.see(x[c]);
        }
    } else {
        for (std::size_t c = 0; c < cells; c += kLanes) {
            const std::size_t left = cells - c;
            Vec one[kLanes], two[kLanes];
            read_lanes<0>(factor, c, left, one);
            read_lanes<kLanes>(factor, c, left, two);
            for (std::size_t k = 0; k < kLanes && k < left; ++k) {
                const Twin both{one[k], two[k]};
                bounds.see(both);
                Lane<Twin>::put(x + kSideBySide * (c + k), both);
            }
        }
    }
    bounds.pass_over_forbidden(x, cells);
    return bounds;
}

// x = (x - highest) / T.
template <class V>
DF_INLINE void shift_factor(V highest, double inverse, std::size_t cells, double* x) {
    using L = Lane<V>;
    for (std::size_t j = 0; j < cells; ++j)
        L::put(x + L::kCount * j, (L::at(x + L::kCount * j) - highest) * L::of(inverse));
}

// An exponential that would be denormal is 0 (see exponential), and so is that of what is forbidden.
DF_CASE void exponentiate(double* x, std::size_t n) {
    const std::size_t whole = n / kLanes * kLanes;
    for (std::size_t j = 0; j < whole; j += kLanes) store(x + j, exponential(load(x + j)));
    if (whole < n) store_first(x + whole, exponential(load_first(x + whole, n - whole, 0.0)), n - whole);
}

void share_exponentials(const double* scores, std::size_t cells, double inverse, double* out,
                        SharedExponentials& shared) {
    FactorScores factor;
    factor.own[0] = scores;
    const FactorBounds<double> bounds = read_factor<double>(factor, cells, out);
    shift_factor<double>(bounds.highest, inverse, cells, out);
    exponentiate(out, cells);
    shared.values = out;
    shared.bad_number = bounds.strange != 0.0;
    shared.is_huge = bounds.huge() != 0.0;
    shared.lowest = (bounds.lowest - bounds.highest) * inverse;
    shared.highest = bounds.highest;
}

enum class Sums { products, logarithms, maxima };

constexpr double kSmallSum = 1e-250;   // something may have been lost in sums below it
constexpr double kNoUnderflow = -690;  // products of such a logarithm are not denormal

template <class V, Sums How>
class JunctionUp {
    using L = Lane<V>;
    static constexpr bool kProducts = How == Sums::products;
    static constexpr double kOne = kProducts ? 1.0 : 0.0;
    using Combine = std::conditional_t<kProducts, Times, Plus>;

  public:
    explicit JunctionUp(JunctionTask& task) : task_(task), plan_(*task.plan) {}

    void run() {
        read_factors();
        V lost = L::of(0.0);
        for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
            const EliminationStep& step = plan_.steps[s];
            low_ = L::of(0.0);
            fill(step);
            double* below = task_.messages + L::kCount * step.message;
            if constexpr (kProducts) lost = L::larger_of(lost, sum(step, below, s));
            if constexpr (How == Sums::logarithms) sum_in_logarithms(step, below);
            if constexpr (How == Sums::maxima) reduce_columns<Most>(step, below);
            if (!kProducts && step.parent < 0) total_ = total_ + L::at(below);
        }
        task_.is_normalised = How == Sums::logarithms;
        for (std::size_t l = 0; l < L::kCount; ++l) {
            double total = L::get(total_, l);
            if (kProducts) {
                const double log = std::log(L::get(mantissa_, l)) + L::get(exponent_, l) * 0.69314718055994530942;
                total = L::get(impossible_, l) != 0.0 ? -kInfinity : total + log / task_.inverse_temperature;
            }
            task_.total[l] = total;
            task_.is_lost[l] = L::get(lost, l) != 0.0;
            task_.bad_number[l] = L::get(strange_, l) != 0.0;
            task_.is_huge[l] = L::get(huge_, l) != 0.0;
        }
    }

  private:
    DF_INLINE V cell(std::size_t j) const { return L::at(own_ + L::kCount * j); }
    DF_INLINE void put(std::size_t j, V v) { L::put(own_ + L::kCount * j, v); }
    DF_INLINE double* numbers_of(std::size_t f) { return task_.exponentials + L::kCount * plan_.factor_begins[f]; }

    // All factors are read first: one long loop of exponentials is faster than many short ones.
    void read_factors() {
        const std::size_t n = plan_.factor_cells.size();
        for (std::size_t f = 0; f < n; ++f) {
            const FactorScores& scores = task_.factors[f];
            if (scores.ready) {
                strange_ = L::larger_of(strange_, L::of(scores.ready->bad_number ? 1.0 : 0.0));
                huge_ = L::larger_of(huge_, L::of(scores.ready->is_huge ? 1.0 : 0.0));
                if constexpr (kProducts) total_ = total_ + L::of(scores.ready->highest);
                continue;
            }
            const std::size_t cells = plan_.factor_cells[f];
            const FactorBounds<V> bounds = read_factor<V>(scores, cells, numbers_of(f));
            strange_ = L::larger_of(strange_, bounds.strange);
            huge_ = L::larger_of(huge_, bounds.huge());
            if constexpr (kProducts) {
                shift_factor<V>(bounds.highest, task_.inverse_temperature, cells, numbers_of(f));
                total_ = total_ + bounds.highest;
                L::put(task_.factor_lowest + L::kCount * f,
                       (bounds.lowest - bounds.highest) * L::of(task_.inverse_temperature));
            }
        }
        if constexpr (kProducts)
            for (std::size_t f = 0; f < n;) {
                std::size_t last = f;  // those that lie one behind the other
                while (last < n && !task_.factors[last].ready) ++last;
                if (last > f)
                    exponentiate(numbers_of(f), L::kCount * (plan_.factor_begins[last] - plan_.factor_begins[f]));
                f = last + 1;
            }
    }

    DF_INLINE void fill(const EliminationStep& step) {
        double *before = nullptr, *free = task_.scratch;
        for (std::size_t at = 0; at < step.levels.size(); ++at) {
            const EliminationStep::Level& level = step.levels[at];
            own_ = at + 1 == step.levels.size() ? task_.tables + L::kCount * step.table : free;
            bool is_filled = false;
            for (const EliminationStep::Input& input : level.inputs) {
                if (input.is_message) {
                    if constexpr (kProducts) low_ = low_ + L::at(task_.lowest + L::kCount * input.index);
                    const double* message = task_.messages + L::kCount * plan_.steps[input.index].message;
                    combine<false>(level, input.walk, before, is_filled, message);
                } else if (const SharedExponentials* ready = task_.factors[input.index].ready) {
                    if constexpr (kProducts) low_ = low_ + L::of(ready->lowest);
                    const double* shared = kProducts ? ready->values : task_.factors[input.index].shared[0];
                    combine<true>(level, input.walk, before, is_filled, shared);
                } else {
                    if constexpr (kProducts) low_ = low_ + L::at(task_.factor_lowest + L::kCount * input.index);
                    combine<false>(level, input.walk, before, is_filled, numbers_of(input.index));
                }
                is_filled = true;
            }
            if (!is_filled && before) repeat<V>(before, level.cells / level.repeats, level.repeats, own_);
            if (!is_filled && !before)
                for (std::size_t j = 0; j < level.cells; ++j) put(j, L::of(kOne));
            if (at == 0 && task_.known) keep_known(step);
            before = own_;
            free += L::kCount * level.cells;
        }
    }

    template <bool Shared>
    DF_INLINE void combine(const EliminationStep::Level& level, const Walk& walk, const double* before, bool is_filled,
                           const double* other) {
        if (!is_filled && !before) return overlay<V, Assign, Shared>(walk, own_, other);
        if (!is_filled && walk.run.size == level.repeats) return expand<V, Combine, Shared>(walk, before, other, own_);
        if (!is_filled) repeat<V>(before, level.cells / level.repeats, level.repeats, own_);
        overlay<V, Combine, Shared>(walk, own_, other);
    }

    // Labels of the step's node other than the known one are forbidden; on the first level, which has no other axis.
    DF_INLINE void keep_known(const EliminationStep& step) {
        const auto node = static_cast<std::size_t>(step.nodes[0]);
        for (std::size_t v = 0; v < step.n_labels; ++v) {
            double other[L::kCount];
            for (std::size_t l = 0; l < L::kCount; ++l) {
                const std::int32_t label = task_.known[l][node];
                other[l] = label >= 0 && static_cast<std::size_t>(label) != v ? 1.0 : 0.0;
            }
            put(v, L::where_less(L::of(0.0), L::at(other), L::of(kProducts ? 0.0 : -kInfinity), cell(v)));
        }
    }

    template <class Op>
    DF_INLINE void reduce_columns(const EliminationStep& step, double* below) const {
        const std::size_t size = step.n_below;
        if constexpr (L::kCount == 1) {
            for (std::size_t j = 0; j < size; ++j) below[j] = own_[j];
            for (std::size_t v = 1; v < step.n_labels; ++v) {
                const double* row = own_ + v * size;
                DF_INDEPENDENT
                for (std::size_t j = 0; j < size; ++j) below[j] = Op::of(below[j], row[j]);
            }
        } else {
            for (std::size_t j = 0; j < size; ++j) {
                V value = cell(j);
                for (std::size_t v = 1; v < step.n_labels; ++v) value = Op::of(value, cell(v * size + j));
                L::put(below + L::kCount * j, value);
            }
        }
    }

    // 1 where a sum is so small that something may have been lost in it. A sum is 0 for good where what is forbidden
    // makes it so, and no product can have become too small.
    DF_INLINE V sum(const EliminationStep& step, double* below, std::size_t s) {
        reduce_columns<Plus>(step, below);
        const std::size_t size = step.n_below;
        const V one = L::of(1.0), zero = L::of(0.0), none = L::of(kInfinity);
        V least = none, most = zero;
        for (std::size_t j = 0; j < size; ++j) {
            const V value = L::at(below + L::kCount * j);
            least = L::smaller_of(value, least);
            most = L::larger_of(value, most);
        }
        V least_positive = least;
        if (L::any_at_most(least, 0.0)) {
            least_positive = none;
            for (std::size_t j = 0; j < size; ++j) {
                const V value = L::at(below + L::kCount * j);
                least_positive = L::smaller_of(L::where_less(zero, value, value, none), least_positive);
            }
        }
        impossible_ = L::where_less(zero, most, impossible_, one);
        most = L::where_less(zero, most, most, one);
        const V inverse = one / most;
        for (std::size_t j = 0; j < size; ++j) {
            double* to = below + L::kCount * j;
            L::put(to, L::at(to) * inverse);
        }
        exponent_ = exponent_ + L::exponent(mantissa_ * most);
        mantissa_ = L::mantissa(mantissa_ * most);
        L::put(task_.scales + L::kCount * s, most);
        least_positive = L::smaller_of(least_positive * inverse, one);
        const V low = L::exponent(least_positive) * L::of(0.6931471805599453);
        L::put(task_.lowest + L::kCount * s, L::where_less(L::of(1e-300), least_positive, low, L::of(-1e4)));
        const V is_sure = L::where_less(L::of(kNoUnderflow), low_, one, zero);
        return L::where_less(L::of(kSmallSum), least, zero, one - is_sure);
    }

    DF_INLINE void sum_in_logarithms(const EliminationStep& step, double* below) {
        const std::size_t size = step.n_below;
        const V inverse = L::of(task_.inverse_temperature), none = L::of(-kInfinity);
        reduce_columns<Most>(step, below);
        for (std::size_t v = 0; v < step.n_labels; ++v)
            for (std::size_t j = 0; j < size; ++j) {
                const V top = L::at(below + L::kCount * j);
                put(v * size + j, (cell(v * size + j) - L::where_less(none, top, top, L::of(0.0))) * inverse);
            }
        exponentiate(own_, L::kCount * step.cells);
        for (std::size_t j = 0; j < size; ++j) {
            V total = L::of(0.0);
            for (std::size_t v = 0; v < step.n_labels; ++v) total = total + cell(v * size + j);
            const V share = L::where_less(L::of(0.0), total, L::of(1.0) / total, L::of(0.0));
            for (std::size_t v = 0; v < step.n_labels; ++v) put(v * size + j, cell(v * size + j) * share);
            for (std::size_t l = 0; l < L::kCount; ++l)
                below[L::kCount * j + l] += std::log(L::get(total, l)) / task_.inverse_temperature;
        }
    }

    JunctionTask& task_;
    const EliminationPlan& plan_;
    double* own_ = nullptr;
    V low_ = L::of(0.0);  // logarithm of the smallest product that is not forbidden, or less
    V total_ = L::of(0.0), mantissa_ = L::of(1.0), exponent_ = L::of(0.0);
    V strange_ = L::of(0.0), huge_ = L::of(0.0), impossible_ = L::of(0.0);  // 1 where so
};

// A probability that would be denormal is 0: such numbers are slow and no more exact.
DF_INLINE Vec flushed(Vec v) {
    return select(less(v, splat(1e-300)), splat(0.0), v);
}

template <std::size_t First>
DF_INLINE void write_lanes(const FactorSums& sums, const double* x, std::size_t c, std::size_t left) {
    Vec columns[kLanes], rows[kLanes];
    for (std::size_t k = 0; k < kLanes; ++k) columns[k] = k < left ? load(x + kSideBySide * (c + k) + First) : Vec{};
    transpose(columns, rows);
    for (std::size_t l = 0; l < kLanes; ++l) {
        const Vec row = flushed(rows[l]);
        if (double* to = sums.own[First + l]) {
            if (left >= kLanes)
                store(to + c, row);
            else
                store_first(to + c, row, left);
        }
        if (double* to = sums.shared[First + l]) {
            if (left >= kLanes)
                store(to + c, load(to + c) + row);
            else
                for (std::size_t k = 0; k < left; ++k) to[c + k] += row[k];
        }
    }
}

// Marginals [cells][lanes] to where they go.
template <class V>
DF_INLINE void write_sums(const FactorSums& sums, const double* x, std::size_t cells) {
    if constexpr (std::is_same_v<V, double>) {
        const auto value = [&](std::size_t c) DF_INLINE_LAMBDA { return x[c] < 1e-300 ? 0.0 : x[c]; };
        for (std::size_t c = 0; sums.own[0] && c < cells; ++c) sums.own[0][c] = value(c);
        for (std::size_t c = 0; sums.shared[0] && c < cells; ++c) sums.shared[0][c] += value(c);
    } else {
        for (std::size_t c = 0; c < cells; c += kLanes) {
            write_lanes<0>(sums, x, c, cells - c);
            write_lanes<kLanes>(sums, x, c, cells - c);
        }
    }
}

DF_INLINE bool is_wanted(const FactorSums& sums) {
    bool any = false;
    for (std::size_t l = 0; l < kSideBySide; ++l) any |= sums.own[l] || sums.shared[l];
    return any;
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

// From the last level of a step to the first: use(input, level) is told of the level with the sums over later axes.
// That of the node alone is first_level then.
template <class V, class Op, class Use>
DF_INLINE void for_levels(JunctionTask& task, const EliminationStep& step, double start, Use use) {
    using L = Lane<V>;
    double *at = task.tables + L::kCount * step.table, *free = task.scratch;
    for (std::size_t l = step.levels.size(); l-- > 0;) {
        const EliminationStep::Level& level = step.levels[l];
        for (const EliminationStep::Input& input : level.inputs) use(input, at);
        if (l == 0) break;
        drop_axes<V, Op>(at, level.cells / level.repeats, level.repeats, start, free);
        at = free;
        free += L::kCount * step.levels[l - 1].cells;
    }
    task.first_level = at;
}

// After a pass of sums: tables become the probabilities of their cells. Where a step is done, the message of each of
// its children is what its table is multiplied with: the probability of the separator, divided by the sum.
template <class V>
void spread_down(JunctionTask& task) {
    using L = Lane<V>;
    const EliminationPlan& plan = *task.plan;
    double* x = task.scratch + L::kCount * plan.most_partial;
    double entropy = 0.0;
    const auto share = [&](std::size_t s, const double* above) DF_INLINE_LAMBDA {
        const EliminationStep& step = plan.steps[s];
        double* below = task.messages + L::kCount * step.message;
        if (task.is_normalised) {
            for (std::size_t j = 0; j < L::kCount * step.n_below; ++j) below[j] = above[j];
            return;
        }
        const V scale = L::at(task.scales + L::kCount * s);
        for (std::size_t j = 0; j < step.n_below; ++j, below += L::kCount, above += L::kCount) {
            const V sum = L::at(below) * scale;
            L::put(below, L::where_less(L::of(0.0), sum, L::at(above) / sum, L::of(0.0)));
        }
    };
    for (std::size_t s = plan.steps.size(); s-- > 0;) {
        const EliminationStep& step = plan.steps[s];
        const std::size_t size = step.n_below;
        if (step.parent < 0) {
            double whole[L::kCount];
            L::put(whole, L::of(1.0));
            share(s, whole);
        }
        double *own = task.tables + L::kCount * step.table, *ratio = task.messages + L::kCount * step.message;
        for (std::size_t v = 0; v < step.n_labels; ++v) {
            double* row = own + L::kCount * v * size;
            DF_INDEPENDENT
            for (std::size_t j = 0; j < size; ++j)
                L::put(row + L::kCount * j, L::at(row + L::kCount * j) * L::at(ratio + L::kCount * j));
        }
        for_levels<V, Plus>(task, step, 0.0, [&](const EliminationStep::Input& input, const double* level) {
            if (input.is_message) {
                gather<V, Plus>(input.walk, level, plan.steps[input.index].n_below, 0.0, x);
                share(input.index, x);
            } else if (task.factor_sums && is_wanted(task.factor_sums[input.index])) {
                const std::size_t cells = plan.factor_cells[input.index];
                gather<V, Plus>(input.walk, level, cells, 0.0, x);
                write_sums<V>(task.factor_sums[input.index], x, cells);
            }
        });
        if (task.node_sums && is_wanted(task.node_sums[step.nodes[0]])) {
            V total = L::of(0.0);
            for (std::size_t v = 0; v < step.n_labels; ++v) total = total + L::at(task.first_level + L::kCount * v);
            for (std::size_t v = 0; v < step.n_labels; ++v)  // the total is 1 but for rounding
                L::put(x + L::kCount * v, L::at(task.first_level + L::kCount * v) / total);
            write_sums<V>(task.node_sums[step.nodes[0]], x, step.n_labels);
        }
        if (task.entropy) {  // of the node given its separator: that of both less that of the separator
            for (std::size_t j = 0; j < size; ++j) {
                double above = 0.0;
                for (std::size_t v = 0; v < step.n_labels; ++v) {
                    const double mass = own[v * size + j];
                    above += mass;
                    if (mass > 0.0) entropy -= mass * std::log(mass);
                }
                if (above > 0.0) entropy += above * std::log(above);
            }
        }
    }
    if (task.entropy) *task.entropy = entropy > 0.0 ? entropy : 0.0;
}

// After a pass of maxima, of one example: tables become the highest scores of labellings with their labels, what is
// inside plus the best outside. Those of nodes go to node_sums.
void best_down(JunctionTask& task) {
    const EliminationPlan& plan = *task.plan;
    double* x = task.scratch + plan.most_partial;
    // Where nothing inside fits, nothing fits at all.
    const auto add = [&](std::size_t s, const double* outside) {
        double* inside = task.messages + plan.steps[s].message;
        for (std::size_t j = 0; j < plan.steps[s].n_below; ++j)
            inside[j] = inside[j] > -kInfinity ? outside[j] - inside[j] : -kInfinity;
    };
    for (std::size_t s = plan.steps.size(); s-- > 0;) {
        const EliminationStep& step = plan.steps[s];
        const std::size_t size = step.n_below;
        if (step.parent < 0) add(s, task.total);
        const double* rest = task.messages + step.message;
        for (std::size_t v = 0; v < step.n_labels; ++v)
            for (std::size_t j = 0; j < size; ++j) task.tables[step.table + v * size + j] += rest[j];
        for_levels<double, Most>(task, step, -kInfinity, [&](const EliminationStep::Input& input, const double* level) {
            if (!input.is_message) return;
            gather<double, Most>(input.walk, level, plan.steps[input.index].n_below, -kInfinity, x);
            add(input.index, x);
        });
        double* here = task.node_sums[step.nodes[0]].own[0];
        for (std::size_t v = 0; v < step.n_labels; ++v) here[v] = task.first_level[v];
    }
}

template <Sums How>
void junction_up(JunctionTask& task) {
    if (task.n_lanes == 1)
        JunctionUp<double, How>(task).run();
    else
        JunctionUp<Twin, How>(task).run();
}

void junction_down(JunctionTask& task) {
    if (task.n_lanes == 1)
        spread_down<double>(task);
    else
        spread_down<Twin>(task);
}

}  // namespace
}  // namespace dualfield
