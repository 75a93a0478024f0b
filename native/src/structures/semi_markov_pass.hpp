// One pass over a sequence from left to right, and one back. With s the node where a segment begins and l its length,
//
//   from[s][j]  : labellings of the nodes before s, and the step into a segment of kind j that begins at s,
//   upto[t][j]  = sum over l of from[t - l][j] + segment[t - l][l][j],      from[t][j] = sum over i of upto[t][i] +
//   transition[i][j], after[t][j] : labellings of the nodes from t on, behind a segment of kind j that ends before t,
//   begun[s][j] = sum over l of segment[s][l][j] + after[s + l][j],      after[t][i] = sum over j of transition[i][j] +
//   begun[t][j],
//
// where a sum is that of exponentials, in logarithms, or a maximum: n (L J + J^2) steps (Sarawagi and Cohen 2004). Sums
// over kinds multiply exponentials of transitions, which are computed once; a sum so small that something may have been
// lost in it is computed again in logarithms.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/layout.hpp"
#include "dualfield/core/random.hpp"
#include "dualfield/structures/semi_markov.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

class SemiMarkovStructure::Pass {
  public:
    explicit Pass(const SemiMarkovStructure& structure)
        : structure_(structure), n_kinds_(structure.options_.n_kinds), width_(padded(n_kinds_)) {}

    void begin(std::size_t example, std::size_t from, const ScoreView& view) {
        example_ = example;
        length_ = structure_.length(example);
        const ScoreView own = structure_.view_of(example, from, view);
        node_ = own.own[0];
        rows_ = structure_.options_.with_segments ? own.own[1] : nullptr;
        if (view.shared != shared_ || view.inverse_temperature != factor_) {
            shared_ = view.shared;
            factor_ = view.inverse_temperature;
            read_shared();
        }
        is_bad_ = shared_is_bad_;
        total_ = 0.0;
        reach_ = std::min(structure_.options_.max_length, length_);
        read_roles();
        read_segments();
    }
    // Reads shared scores anew the next time.
    void forget() { factor_ = 0.0; }

    double total() const { return total_; }
    Status status() const {
        if (is_bad_ || !(total_ < kInfinity)) return Status::bad_number;
        return total_ > -kInfinity ? Status::ok : Status::impossible;
    }
    std::size_t length() const { return length_; }
    // Segments that begin at a node have at most so many nodes.
    std::size_t reach(std::size_t s) const { return std::min(reach_, length_ - s); }
    double* segment(std::size_t s, std::size_t l) { return segments_.data() + (s * reach_ + l - 1) * width_; }
    double* from(std::size_t s) { return from_.data() + s * width_; }
    double* upto(std::size_t t) { return upto_.data() + t * width_; }
    double* after(std::size_t t) { return after_.data() + t * width_; }
    double* begun(std::size_t s) { return begun_.data() + s * width_; }
    const double* transition(std::size_t i) const { return transitions_.data() + i * width_; }

    void up_sum() { forward<false>(); }
    void up_max() { forward<true>(); }
    void down_sum() { backward<false>(); }
    void down_max() { backward<true>(); }

    // After both passes, all in logarithms or all maxima: use(s, l, values [J]) for each segment, the longest ones that
    // begin at a node first; values are the score of all labellings that have it, or of the best one.
    template <class Use>
    void for_segments(Use use) {
        double* row = row_.require(width_);
        for (std::size_t s = 0; s < length_; ++s)
            for (std::size_t l = reach(s); l > 0; --l) {
                const double *before = from(s), *own = segment(s, l), *behind = after(s + l);
                for (std::size_t j = 0; j < width_; ++j) row[j] = before[j] + own[j] + behind[j];
                use(s, l, row);
            }
    }

    // Probabilities of the parts, after both sums; segments and shared may be null.
    void spread(double* nodes, double* segments, double* shared) {
        double* row = row_.require(width_);
        spread_segments(nodes, segments, shared, [&](std::size_t s, std::size_t l, double* p) {
            const double *before = from(s), *own = segment(s, l), *behind = after(s + l);
            for (std::size_t j = 0; j < width_; ++j) row[j] = before[j] + own[j] + behind[j];
            routines().exponentials(row, total_, width_, p);
        });
        if (shared && length_ > 0) add_transitions(shared);
    }

    // What follows from masses of the segments, read(s, l, p) into p [width], for all parts but the transitions;
    // segments and shared may be null.
    template <class Read>
    void spread_segments(double* nodes, double* segments, double* shared, Read read) {
        const std::size_t n_labels = structure_.n_labels_, n_pairs = n_kinds_ * n_kinds_;
        const std::size_t longest = structure_.options_.max_length;
        std::fill_n(nodes, length_ * n_labels, 0.0);
        if (shared) std::fill_n(shared, structure_.parts_.n_shared, 0.0);
        double* role = fill_roles(0.0);
        double* tail = tail_.require(2 * width_);
        double* p = tail + width_;
        for (std::size_t s = 0; s < length_; ++s) {
            std::fill_n(tail, width_, 0.0);
            for (std::size_t l = reach(s); l > 0; --l) {
                read(s, l, p);
                if (segments) std::copy_n(p, n_kinds_, segments + (segment_row(s) + l - 1) * n_kinds_);
                if (shared)
                    for (std::size_t j = 0; j < n_kinds_; ++j) shared[n_pairs + j * longest + l - 1] += p[j];
                // The node s + l - 1 is the last of this segment, and inside of the longer ones.
                double* end = at(role, l == 1 ? kSingle : kEnd, s + l - 1);
                double* inside = at(role, l == 1 ? kBegin : kInside, s + l - 1);
                for (std::size_t j = 0; j < width_; ++j) {
                    end[j] += p[j];
                    inside[j] += tail[j];
                    tail[j] += p[j];
                }
            }
        }
        for_roles([&](std::size_t t, std::size_t label, Role which, std::size_t kind) {
            nodes[t * n_labels + label] += at(role, which, t)[kind];
        });
        if (!shared || length_ == 0 || !structure_.options_.with_ends) return;
        double* ends = shared + n_pairs + n_kinds_ * longest;
        std::copy_n(nodes, n_labels, ends);
        std::copy_n(nodes + (length_ - 1) * n_labels, n_labels, ends + n_labels);
    }

    // The score of the best labelling with each label, after both maxima.
    void spread_max(double* nodes) {
        const std::size_t n_labels = structure_.n_labels_;
        std::fill_n(nodes, length_ * n_labels, -kInfinity);
        double *role = fill_roles(-kInfinity), *tail = tail_.require(2 * width_);
        std::size_t s_before = length_;
        const auto raise = [&](double* out, const double* values) {
            for (std::size_t j = 0; j < width_; ++j) out[j] = std::max(out[j], values[j]);
        };
        for_segments([&](std::size_t s, std::size_t l, const double* values) {
            if (s != s_before) std::fill_n(tail, width_, -kInfinity);
            s_before = s;
            if (l == 1) {
                raise(at(role, kSingle, s), values);
                raise(at(role, kBegin, s), tail);
                return;
            }
            raise(at(role, kEnd, s + l - 1), values);
            raise(at(role, kInside, s + l - 1), tail);
            raise(tail, values);
        });
        for_roles([&](std::size_t t, std::size_t label, Role which, std::size_t kind) {
            double& best = nodes[t * n_labels + label];
            best = std::max(best, at(role, which, t)[kind]);
        });
    }

    // By the chain rule, from left to right: which kind comes next, then how long it is.
    double entropy() {
        double sum = 0.0;
        const auto add = [&](double log_mass, double log_share) {
            if (log_mass > -kInfinity && log_share > -kInfinity) sum -= std::exp(log_mass) * log_share;
        };
        for (std::size_t s = 0; s < length_; ++s)
            for (std::size_t j = 0; j < n_kinds_; ++j) {
                if (!(begun(s)[j] > -kInfinity)) continue;
                if (s == 0) add(begun(0)[j] - total_, begun(0)[j] - total_);
                for (std::size_t i = 0; s > 0 && i < n_kinds_; ++i)
                    if (upto(s)[i] > -kInfinity && transition(i)[j] > -kInfinity)
                        add(upto(s)[i] + transition(i)[j] + begun(s)[j] - total_,
                            transition(i)[j] + begun(s)[j] - after(s)[i]);
                for (std::size_t l = 1; l <= reach(s); ++l)
                    if (segment(s, l)[j] > -kInfinity && after(s + l)[j] > -kInfinity)
                        add(from(s)[j] + segment(s, l)[j] + after(s + l)[j] - total_,
                            segment(s, l)[j] + after(s + l)[j] - begun(s)[j]);
            }
        return std::max(sum, 0.0);
    }

    // After the sums from behind: draws one segment after another.
    template <class Uniform>
    void draw(Uniform uniform, std::int32_t* labels) {
        std::size_t before = n_kinds_;
        for (std::size_t s = 0; s < length_;) {
            double* row = row_.require(std::max(width_, padded(reach_)));
            for (std::size_t j = 0; j < n_kinds_; ++j) row[j] = begun(s)[j] + (s > 0 ? transition(before)[j] : 0.0);
            const std::size_t kind = draw_logarithms(row, n_kinds_, uniform());
            for (std::size_t l = 1; l <= reach(s); ++l) row[l - 1] = segment(s, l)[kind] + after(s + l)[kind];
            const std::size_t l = draw_logarithms(row, reach(s), uniform()) + 1;
            structure_.write({s, l, kind, true}, labels);
            before = kind;
            s += l;
        }
    }

    // After the maxima from the front.
    void decode(std::int32_t* labels) {
        if (length_ == 0) return;
        std::size_t t = length_;
        auto kind = static_cast<std::size_t>(std::max_element(upto(t), upto(t) + n_kinds_) - upto(t));
        while (true) {
            std::size_t best = 0;
            double highest = -kInfinity;
            for (std::size_t l = 1; l <= std::min(reach_, t); ++l) {
                const double value = from(t - l)[kind] + segment(t - l, l)[kind];
                if (value > highest) {
                    highest = value;
                    best = l;
                }
            }
            structure_.write({t - best, best, kind, true}, labels);
            t -= best;
            if (t == 0) return;
            const std::size_t behind = kind;
            highest = -kInfinity;
            for (std::size_t i = 0; i < n_kinds_; ++i)
                if (upto(t)[i] + transition(i)[behind] > highest) {
                    highest = upto(t)[i] + transition(i)[behind];
                    kind = i;
                }
        }
    }

  private:
    double* at(double* role, Role which, std::size_t t) { return role + (which * length_ + t) * width_; }
    double* fill_roles(double value) {
        const std::size_t size = kRoles * length_ * width_;
        double* role = role_.require(std::max<std::size_t>(size, 1));
        std::fill_n(role, size, value);
        return role;
    }
    template <class Use>
    void for_roles(Use use) const {
        for (std::size_t t = 0; t < length_; ++t)
            for (std::size_t kind = 0; kind < n_kinds_; ++kind)
                for (std::size_t which = 0; which < kRoles; ++which) {
                    const std::int32_t label = structure_.role(kind, static_cast<Role>(which));
                    if (label >= 0) use(t, static_cast<std::size_t>(label), static_cast<Role>(which), kind);
                }
    }
    std::size_t segment_row(std::size_t s) const { return structure_.first_segment(length_, s); }

    static std::size_t draw_logarithms(double* row, std::size_t n, double uniform) {
        const double highest = *std::max_element(row, row + n);
        for (std::size_t k = 0; k < n; ++k) row[k] = std::exp(row[k] - highest);
        return draw_index({row, n}, uniform);
    }

    // Node scores by role, with those of the two ends.
    void read_roles() {
        double* role = fill_roles(-kInfinity);
        const std::size_t n_labels = structure_.n_labels_;
        for (std::size_t j = 0; j < length_ * n_labels; ++j) is_bad_ |= !(factor_ * node_[j] < kInfinity);
        for_roles([&](std::size_t t, std::size_t label, Role which, std::size_t kind) {
            double score = factor_ * node_[t * n_labels + label];
            if (t == 0) score += ends_.data()[label];
            if (t + 1 == length_) score += ends_.data()[n_labels + label];
            at(role, which, t)[kind] = score;
        });
    }

    void read_segments() {
        segments_.require(std::max<std::size_t>(length_ * reach_ * width_, 1));
        double *role = role_.data(), *running = tail_.require(2 * width_);
        for (std::size_t s = 0; s < length_; ++s) {
            const double* rows = rows_ ? rows_ + segment_row(s) * n_kinds_ : nullptr;
            std::copy_n(at(role, kBegin, s), width_, running);
            for (std::size_t l = 1; l <= reach(s); ++l) {
                double* own = segment(s, l);
                const double* lasting = durations_.data() + (l - 1) * width_;
                if (l == 1) {
                    const double* single = at(role, kSingle, s);
                    for (std::size_t j = 0; j < width_; ++j) own[j] = single[j] + lasting[j];
                } else {
                    const double *inside = at(role, kInside, s + l - 1), *end = at(role, kEnd, s + l - 1);
                    for (std::size_t j = 0; j < width_; ++j) {
                        own[j] = running[j] + end[j] + lasting[j];
                        running[j] += inside[j];
                    }
                }
                for (std::size_t j = 0; rows && j < n_kinds_; ++j) {
                    const double score = factor_ * rows[(l - 1) * n_kinds_ + j];
                    is_bad_ |= !(score < kInfinity);
                    own[j] += score;
                }
            }
        }
    }

    // out[j] = sum or maximum over the rows of values[row][j]; the rows are overwritten.
    template <bool is_max>
    void reduce(double* values, std::size_t n_rows, double* out) {
        std::fill_n(out, width_, -kInfinity);
        for (std::size_t r = 0; r < n_rows; ++r)
            for (std::size_t j = 0; j < width_; ++j) out[j] = std::max(out[j], values[r * width_ + j]);
        if constexpr (!is_max) {
            double* sums = sums_.require(2 * width_);
            double* shift = sums + width_;
            for (std::size_t j = 0; j < width_; ++j) shift[j] = out[j] > -kInfinity ? out[j] : 0.0;
            for (std::size_t r = 0; r < n_rows; ++r)
                for (std::size_t j = 0; j < width_; ++j) values[r * width_ + j] -= shift[j];
            routines().exponentials(values, 0.0, n_rows * width_, values);
            std::fill_n(sums, width_, 0.0);
            for (std::size_t r = 0; r < n_rows; ++r)
                for (std::size_t j = 0; j < width_; ++j) sums[j] += values[r * width_ + j];
            for (std::size_t j = 0; j < n_kinds_; ++j)
                out[j] = sums[j] > 0.0 ? shift[j] + std::log(sums[j]) : -kInfinity;
        }
    }

    // out[j] = sum or maximum over i of values[i] + table[i][j].
    template <bool is_max>
    void step(const double* values, const double* table, const double* exponentials, double* out) {
        if constexpr (is_max) {
            std::fill_n(out, width_, -kInfinity);
            for (std::size_t i = 0; i < n_kinds_; ++i)
                for (std::size_t j = 0; j < width_; ++j) out[j] = std::max(out[j], values[i] + table[i * width_ + j]);
            return;
        }
        const double highest = *std::max_element(values, values + n_kinds_);
        if (!(highest > -kInfinity)) {
            std::fill_n(out, width_, -kInfinity);
            return;
        }
        double* x = row_.require(width_);
        routines().exponentials(values, highest, width_, x);
        std::fill_n(out, width_, 0.0);
        for (std::size_t i = 0; i < n_kinds_; ++i)
            for (std::size_t j = 0; j < width_; ++j) out[j] += x[i] * exponentials[i * width_ + j];
        for (std::size_t j = 0; j < n_kinds_; ++j)
            out[j] = out[j] > kSmallSum ? std::log(out[j]) + highest + shift_ : in_logarithms(values, table, j);
        for (std::size_t j = n_kinds_; j < width_; ++j) out[j] = -kInfinity;
    }
    double in_logarithms(const double* values, const double* table, std::size_t j) const {
        double highest = -kInfinity, sum = 0.0;
        for (std::size_t i = 0; i < n_kinds_; ++i) highest = std::max(highest, values[i] + table[i * width_ + j]);
        if (!(highest > -kInfinity)) return -kInfinity;
        for (std::size_t i = 0; i < n_kinds_; ++i) sum += std::exp(values[i] + table[i * width_ + j] - highest);
        return highest + std::log(sum);
    }

    template <bool is_max>
    void forward() {
        if (is_bad_ || length_ == 0) return;
        const std::size_t size = (length_ + 1) * width_;
        from_.require(size);
        upto_.require(size);
        std::fill_n(from(0), width_, -kInfinity);
        std::fill_n(from(0), n_kinds_, 0.0);
        double* values = values_.require(reach_ * width_);
        for (std::size_t t = 1; t <= length_; ++t) {
            const std::size_t most = std::min(reach_, t);
            for (std::size_t l = 1; l <= most; ++l) {
                const double *before = from(t - l), *own = segment(t - l, l);
                double* row = values + (l - 1) * width_;
                for (std::size_t j = 0; j < width_; ++j) row[j] = before[j] + own[j];
            }
            reduce<is_max>(values, most, upto(t));
            if (t < length_) step<is_max>(upto(t), transitions_.data(), exponentials_.data(), from(t));
        }
        const double* last = upto(length_);
        const double highest = *std::max_element(last, last + n_kinds_);
        total_ = highest;
        if (is_max || !(highest > -kInfinity)) return;
        double sum = 0.0;
        for (std::size_t j = 0; j < n_kinds_; ++j) sum += std::exp(last[j] - highest);
        total_ += std::log(sum);
    }

    template <bool is_max>
    void backward() {
        if (is_bad_ || length_ == 0) return;
        const std::size_t size = (length_ + 1) * width_;
        after_.require(size);
        begun_.require(size);
        std::fill_n(after(length_), width_, -kInfinity);
        std::fill_n(after(length_), n_kinds_, 0.0);
        double* values = values_.require(reach_ * width_);
        for (std::size_t s = length_; s-- > 0;) {
            for (std::size_t l = 1; l <= reach(s); ++l) {
                const double *own = segment(s, l), *behind = after(s + l);
                double* row = values + (l - 1) * width_;
                for (std::size_t j = 0; j < width_; ++j) row[j] = own[j] + behind[j];
            }
            reduce<is_max>(values, reach(s), begun(s));
            step<is_max>(begun(s), turned_.data(), turned_exponentials_.data(), after(s));
        }
    }

    // Expected numbers of transitions: products of what is before and what is behind, and of the transition itself.
    void add_transitions(double* shared) {
        double* sums = pair_sums_.require(n_kinds_ * width_);
        std::fill_n(sums, n_kinds_ * width_, 0.0);
        double* x = row_.require(2 * width_);
        double* y = x + width_;
        for (std::size_t t = 1; t < length_; ++t) {
            const double before = *std::max_element(upto(t), upto(t) + n_kinds_);
            const double behind = *std::max_element(begun(t), begun(t) + n_kinds_);
            if (!(before > -kInfinity) || !(behind > -kInfinity)) continue;
            if (before + behind + shift_ - total_ > kFar) {
                // The best on both sides do not go together: products would be lost.
                for (std::size_t i = 0; i < n_kinds_; ++i)
                    for (std::size_t j = 0; j < n_kinds_; ++j)
                        shared[i * n_kinds_ + j] += std::exp(upto(t)[i] + transition(i)[j] + begun(t)[j] - total_);
                continue;
            }
            routines().exponentials(upto(t), before, width_, x);
            routines().exponentials(begun(t), behind, width_, y);
            const double scale = std::exp(before + behind + shift_ - total_);
            for (std::size_t i = 0; i < n_kinds_; ++i) {
                const double factor = scale * x[i];
                for (std::size_t j = 0; j < width_; ++j) sums[i * width_ + j] += factor * y[j];
            }
        }
        for (std::size_t i = 0; i < n_kinds_; ++i)
            for (std::size_t j = 0; j < n_kinds_; ++j)
                shared[i * n_kinds_ + j] += sums[i * width_ + j] * exponentials_.data()[i * width_ + j];
    }

    void read_shared() {
        const auto& options = structure_.options_;
        const std::size_t n = n_kinds_, longest = options.max_length, n_labels = structure_.n_labels_;
        shared_is_bad_ = false;
        const auto read = [&](std::size_t place) {
            const double score = shared_ ? factor_ * shared_[place] : 0.0;
            shared_is_bad_ |= !(score < kInfinity);
            return score;
        };
        double *table = transitions_.require(n * width_), *turned = turned_.require(n * width_);
        std::fill_n(table, n * width_, -kInfinity);
        std::fill_n(turned, n * width_, -kInfinity);
        double highest = -kInfinity;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) {
                const double score = read(i * n + j) + (options.limits ? options.limits[i * n + j] : 0.0);
                table[i * width_ + j] = turned[j * width_ + i] = score;
                highest = std::max(highest, score);
            }
        shift_ = highest > -kInfinity ? highest : 0.0;
        routines().exponentials(table, shift_, n * width_, exponentials_.require(n * width_));
        routines().exponentials(turned, shift_, n * width_, turned_exponentials_.require(n * width_));
        double* lasting = durations_.require(longest * width_);
        std::fill_n(lasting, longest * width_, -kInfinity);
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t l = 0; l < longest; ++l) {
                const double score = read(n * n + j * longest + l);
                if (l < static_cast<std::size_t>(options.longest[j])) lasting[l * width_ + j] = score;
            }
        double* ends = ends_.require(2 * n_labels);
        for (std::size_t k = 0; k < 2 * n_labels; ++k)
            ends[k] = options.with_ends ? read(n * n + n * longest + k) : 0.0;
    }

    static constexpr double kSmallSum = 1e-250;  // something may have been lost in sums below it
    static constexpr double kFar = 300.0;        // products of so large a scale may hide what underflowed

    const SemiMarkovStructure& structure_;
    std::size_t n_kinds_, width_, example_ = 0, length_ = 0, reach_ = 0;
    const double *node_ = nullptr, *rows_ = nullptr, *shared_ = nullptr;
    double factor_ = 0.0, total_ = 0.0, shift_ = 0.0;
    bool is_bad_ = false, shared_is_bad_ = false;
    Buffer segments_, from_, upto_, after_, begun_, transitions_, turned_, exponentials_, turned_exponentials_,
        durations_, ends_, role_, row_, tail_, values_, sums_, pair_sums_;
};

}  // namespace dualfield
