// The dynamic programme itself, written once for every algebra and order.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "chain_algebra.hpp"
#include "dualfield/structures/chains/chain_passes.hpp"
#include "rows.hpp"

namespace dualfield {
namespace {

// The logarithm of a long product for each of four lanes: mantissas and exponents apart, one call of log at the end.
class LogProducts {
  public:
    template <int L>
    DF_INLINE void multiply(int first, const double* factors) {
        if constexpr (L == 4) {
            const IntVec bits = bits_of(mantissa_ * load(factors));
            exponent_ += (bits >> 52) - 1023;
            mantissa_ = from_bits((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000);
        } else {
            for (int l = 0; l < L; ++l) {
                int power;
                mantissa_[first + l] = std::frexp(mantissa_[first + l] * factors[l], &power);
                exponent_[first + l] += power;
            }
        }
    }
    template <int L>
    DF_INLINE void add(int first, const double* summands) {
        if constexpr (L == 4) {
            const Vec corrected = load(summands) - lost_, sum = sum_ + corrected;
            lost_ = (sum - sum_) - corrected;
            sum_ = sum;
        } else {
            for (int l = 0; l < L; ++l) {
                const double corrected = summands[l] - lost_[first + l], sum = sum_[first + l] + corrected;
                lost_[first + l] = (sum - sum_[first + l]) - corrected;
                sum_[first + l] = sum;
            }
        }
    }
    double value(int lane) const {
        return sum_[lane] + std::log(mantissa_[lane]) + static_cast<double>(exponent_[lane]) * 0.69314718055994530942;
    }

  private:
    Vec sum_ = {}, lost_ = {};  // lost_: what rounding took from the sum, given back at the next step (Kahan)
    Vec mantissa_ = {1.0, 1.0, 1.0, 1.0};
    IntVec exponent_ = {};
};

// Plain chains (order 1) are told apart at compile time: their slots are labels, and there is one group.
template <class A, bool Plain>
class Passes {
  public:
    DF_INLINE Passes(const ChainContext& context, ChainWorkspace& workspace)
        : context_(context),
          topology_(context.topology),
          scores_(context.scores),
          width_(topology_.width()),
          n_labels_(topology_.n_labels()),
          workspace_(workspace) {
        gathered_ = Plain ? nullptr : workspace.gathered.require(kInStep * topology_.widest_in());
        label_rows_ = Plain ? nullptr : workspace.label_rows.require(kInStep * padded(n_labels_));
        beta_ = workspace.beta.require((2 * kInStep + 1) * width_);
    }

    DF_INLINE void forward(std::span<ChainLane> lanes) {
        lanes_ = lanes.data();
        const int n = static_cast<int>(lanes.size());
        for (int l = 0; l < n; ++l) begin(l);
        std::size_t t = 1;
        if (lanes.size() == kInStep && context_.shared)
            for (const std::size_t common = shortest(lanes); t < common; ++t) forward_step<kInStep>(0, t);
        for (int l = 0; l < n; ++l) {
            for (std::size_t s = t; s < lanes[l].length; ++s) forward_step<1>(l, s);
            finish(l);
        }
    }

    DF_INLINE void backward(std::span<ChainLane> lanes) {
        lanes_ = lanes.data();
        const bool in_step = lanes.size() == kInStep && context_.shared;
        const std::size_t common = in_step ? shortest(lanes) : 1;
        for (int l = 0; l < static_cast<int>(lanes.size()); ++l) {
            const std::size_t last = lanes[l].length - 1;
            std::fill_n(beta_row(l, last), width_, A::kOne);
            report(l, last);
            for (std::size_t t = last; t >= common; --t) backward_step<1>(l, t);
        }
        for (std::size_t t = common - 1; t >= 1; --t) backward_step<kInStep>(0, t);
    }

  private:
    static DF_INLINE std::size_t shortest(std::span<const ChainLane> lanes) {
        std::size_t length = lanes[0].length;
        for (const ChainLane& lane : lanes) length = std::min(length, lane.length);
        return length;
    }
    DF_INLINE double* alpha_row(int l, std::size_t t) const {
        return lanes_[l].alpha + (context_.keep_alpha ? t : t & 1) * width_;
    }
    DF_INLINE double* emission_row(int l, std::size_t t) const {
        return lanes_[l].emission + (context_.keep_emission ? t : t & 1) * width_;
    }
    DF_INLINE double* beta_row(int l, std::size_t t) const {
        return beta_ + (2 * static_cast<std::size_t>(l) + (t & 1)) * width_;
    }

    // Scores of node t of L lanes as rows over states.
    template <int L>
    DF_INLINE void load_emissions(int first, std::size_t t) {
        double* rows[L];
        const double* source[L];
        for (int l = 0; l < L; ++l) {
            const ChainLane& lane = lanes_[first + l];
            rows[l] =
                Plain ? emission_row(first + l, t) : label_rows_ + static_cast<std::size_t>(l) * padded(n_labels_);
            const std::size_t at = (static_cast<std::size_t>(scores_.offsets[lane.example]) + t) * n_labels_;
            source[l] = scores_.node + at;
            const double* ends[2] = {t == 0 ? scores_.start : nullptr, t + 1 == lane.length ? scores_.stop : nullptr};
            if (!scores_.cost && !ends[0] && !ends[1]) continue;
            take_row<false>(rows[l], source[l], n_labels_);
            source[l] = rows[l];
            if (scores_.cost) take_row<true>(rows[l], scores_.cost + at, n_labels_);
            for (const double* end : ends)
                if (end) take_row<true>(rows[l], end, n_labels_);
        }
        double highest[L];
        scale_rows<L>(source, n_labels_, scores_.inverse_temperature, rows, highest, bad_ + first);
        A::template prepare<L>(rows, padded(n_labels_), highest, far_ + first);
        products_.add<L>(first, highest);
        if (Plain) return;
        const auto states = topology_.states();
        for (int l = 0; l < L; ++l) {
            double* row = emission_row(first + l, t);
            for (std::size_t s = 0; s < width_; ++s) row[s] = states[s].label < 0 ? A::kZero : rows[l][states[s].label];
        }
    }

    DF_INLINE void begin(int l) {
        load_emissions<1>(l, 0);
        double* row = alpha_row(l, 0);
        std::fill_n(row, width_, Plain ? A::kOne : A::kZero);
        if (!Plain)
            for (std::size_t label = 0; label < n_labels_; ++label) row[topology_.start_slot(label)] = A::kOne;
        take_in<1>(l, 0, false);
    }

    template <int L>
    DF_INLINE void take_in(int first, std::size_t t, bool check) {
        double* rows[L];
        const double* node[L];
        double taken[L];
        for (int l = 0; l < L; ++l) {
            rows[l] = alpha_row(first + l, t);
            node[l] = emission_row(first + l, t);
        }
        A::template absorb<L>(rows, node, width_, taken, check, far_ + first);
        for (int l = 0; l < L; ++l) lanes_[first + l].taken[t] = taken[l];
        if constexpr (A::kDomain == Domain::exponential)
            products_.multiply<L>(first, taken);
        else
            products_.add<L>(first, taken);
    }

    template <int L>
    DF_INLINE void forward_step(int first, std::size_t t) {
        const TransitionTable& transitions =
            context_.table_at(workspace_, lanes_[first].example, t, A::kDomain, ChainContext::Direction::forward);
        load_emissions<L>(first, t);
        for (const auto& group : topology_.groups()) {
            const double* x[L];
            double* y[L];
            for (int l = 0; l < L; ++l) {
                x[l] = Plain ? alpha_row(first + l, t - 1) : gather(group, alpha_row(first + l, t - 1), l);
                y[l] = alpha_row(first + l, t) + group.first_out;
            }
            A::template product<L>(x, group.n_in, transitions.forward.data() + group.forward_block, group.out_width, y);
        }
        double shift[L];
        for (int l = 0; l < L; ++l) {
            shift[l] = transitions.shift;
            double* row = alpha_row(first + l, t);
            if (!Plain)
                for (const auto& range : topology_.unwritten()) std::fill(row + range.begin, row + range.end, A::kZero);
        }
        if (!context_.shared) check_table(first, transitions);
        products_.add<L>(first, shift);
        take_in<L>(first, t, !transitions.complete);
    }

    DF_INLINE void check_table(int l, const TransitionTable& transitions) {
        lanes_[l].bad_number |= transitions.bad_number;
        if (A::kDomain == Domain::exponential) lanes_[l].out_of_range |= transitions.range > kRange;
    }

    DF_INLINE const double* gather(const ChainTopology::Group& group, const double* row, int l) const {
        double* values = gathered_ + static_cast<std::size_t>(l) * topology_.widest_in();
        const std::uint32_t* slots = topology_.in_slots().data() + group.first_in;
        for (std::size_t i = 0; i < group.n_in; ++i) values[i] = row[slots[i]];
        return values;
    }

    // From beta at node t to beta at node t - 1.
    template <int L>
    DF_INLINE void backward_step(int first, std::size_t t) {
        const TransitionTable& transitions =
            context_.table_at(workspace_, lanes_[first].example, t, A::kDomain, ChainContext::Direction::backward);
        double* pulled[L];
        double* before[L];
        const double* beta[L];
        double taken[L];
        for (int l = 0; l < L; ++l) {
            pulled[l] = emission_row(first + l, t);
            beta[l] = beta_row(first + l, t);
            before[l] = beta_row(first + l, t - 1);
            taken[l] = lanes_[first + l].taken[t];
            if (!Plain) std::fill_n(before[l], width_, A::kZero);
        }
        A::template pull_back<L>(pulled, beta, width_, taken);
        for (const auto& group : topology_.groups()) {
            const double* x[L];
            double* y[L];
            for (int l = 0; l < L; ++l) {
                x[l] = pulled[l] + group.first_out;
                y[l] = Plain ? before[l] : gathered_ + static_cast<std::size_t>(l) * topology_.widest_in();
            }
            A::template product<L>(x, group.n_out, transitions.backward.data() + group.backward_block, group.in_width,
                                   y);
            if (Plain) continue;
            const std::uint32_t* slots = topology_.in_slots().data() + group.first_in;
            for (int l = 0; l < L; ++l)
                for (std::size_t i = 0; i < group.n_in; ++i) before[l][slots[i]] = y[l][i];
        }
        A::template settle<L>(before, width_);
        for (int l = 0; l < L; ++l) report(first + l, t - 1);
    }

    // The result at node t, summed (or maximised) from states to labels.
    DF_INLINE void report(int l, std::size_t t) {
        const ChainLane& lane = lanes_[l];
        if (!lane.nodes) return;
        double* row = beta_ + 2 * kInStep * width_;
        double* out = lane.nodes + t * n_labels_;
        A::report(alpha_row(l, t), beta_row(l, t), width_, lane.log_partition, row);
        if (Plain) return write_row(out, row, n_labels_);
        std::fill_n(out, n_labels_, A::kNothing);
        const auto states = topology_.states();
        for (std::size_t s = 0; s < width_; ++s)
            if (states[s].label >= 0) out[states[s].label] = A::merge(out[states[s].label], row[s]);
    }

    DF_INLINE void finish(int l) {
        ChainLane& lane = lanes_[l];
        lane.bad_number |= any_set(bad_[l]);
        if constexpr (A::kDomain == Domain::exponential) lane.out_of_range |= any_set(far_[l]);
        if (context_.shared) check_table(l, *context_.shared);
        const double last = lane.taken[lane.length - 1];
        const bool impossible = A::kDomain == Domain::exponential ? last == 0.0 : last == -kInfinity;
        lane.log_partition = impossible ? -kInfinity : products_.value(l);
        if constexpr (std::is_same_v<A, LogSum>) {
            const double* row = alpha_row(l, lane.length - 1);
            double* scratch = beta_;
            lane.log_partition += std::log(exponentials(row, 0.0, width_, scratch));
        }
    }

    const ChainContext& context_;
    const ChainTopology& topology_;
    const ChainScores& scores_;
    const std::size_t width_, n_labels_;
    ChainWorkspace& workspace_;
    ChainLane* lanes_ = nullptr;
    double *gathered_, *label_rows_, *beta_;
    LogProducts products_;
    IntVec bad_[kInStep] = {}, far_[kInStep] = {};
};

template <class A, bool Plain>
DF_CASE void forward_pass(const ChainContext& context, ChainWorkspace& workspace, std::span<ChainLane> lanes) {
    Passes<A, Plain>(context, workspace).forward(lanes);
}

template <class A, bool Plain>
DF_CASE void backward_pass(const ChainContext& context, ChainWorkspace& workspace, std::span<ChainLane> lanes) {
    Passes<A, Plain>(context, workspace).backward(lanes);
}

template <class A>
void forward(const ChainContext& context, ChainWorkspace& workspace, std::span<ChainLane> lanes) {
    const auto pass = context.topology.is_plain() ? &forward_pass<A, true> : &forward_pass<A, false>;
    pass(context, workspace, lanes);
}

template <class A>
void backward(const ChainContext& context, ChainWorkspace& workspace, std::span<ChainLane> lanes) {
    const auto pass = context.topology.is_plain() ? &backward_pass<A, true> : &backward_pass<A, false>;
    pass(context, workspace, lanes);
}

// One tile of outer_sums: I in-states times V vectors of out-states, all sums in registers.
template <int I, int V>
DF_INLINE void outer_tile(const ChainLane& lane, std::size_t width, const std::uint32_t* slots, std::size_t out_slot,
                          double* block, std::size_t stride) {
    Vec acc[I][V] = {};
    for (std::size_t t = 1; t < lane.length; ++t) {
        const double* alpha = lane.alpha + (t - 1) * width;
        const double* pulled = lane.emission + t * width + out_slot;
        Vec right[V];
        for (int v = 0; v < V; ++v) right[v] = load(pulled + kLanes * v);
        for (int i = 0; i < I; ++i) {
            const Vec left = splat(alpha[slots[i]]);
            for (int v = 0; v < V; ++v) acc[i][v] += left * right[v];
        }
    }
    for (int i = 0; i < I; ++i)
        for (int v = 0; v < V; ++v) store(block + i * stride + kLanes * v, acc[i][v]);
}

template <int V>
DF_INLINE void outer_columns(const ChainLane& lane, std::size_t width, const ChainTopology::Group& group,
                             const std::uint32_t* slots, std::size_t column, double* sums) {
    const std::size_t stride = group.out_width, out_slot = group.first_out + column;
    double* block = sums + group.forward_block + column;
    std::size_t i = 0;
    for (; i + 4 <= group.n_in; i += 4) outer_tile<4, V>(lane, width, slots + i, out_slot, block + i * stride, stride);
    switch (group.n_in - i) {
        case 3:
            outer_tile<3, V>(lane, width, slots + i, out_slot, block + i * stride, stride);
            break;
        case 2:
            outer_tile<2, V>(lane, width, slots + i, out_slot, block + i * stride, stride);
            break;
        case 1:
            outer_tile<1, V>(lane, width, slots + i, out_slot, block + i * stride, stride);
            break;
        default:
            break;
    }
}

// A matrix product over time, tile by tile.
void outer_sums(const ChainTopology& topology, const ChainLane& lane, double* sums) {
    for (const auto& group : topology.groups()) {
        const std::uint32_t* slots = topology.in_slots().data() + group.first_in;
        for (std::size_t column = 0; column < group.out_width;) {
            const std::size_t vectors = (group.out_width - column) / kLanes;
            if (vectors >= 3)
                outer_columns<3>(lane, topology.width(), group, slots, column, sums);
            else if (vectors == 2)
                outer_columns<2>(lane, topology.width(), group, slots, column, sums);
            else
                outer_columns<1>(lane, topology.width(), group, slots, column, sums);
            column += kLanes * std::min<std::size_t>(vectors, 3);
        }
    }
}

}  // namespace
}  // namespace dualfield
