// The chart of a sentence. So that every tree is counted once, its brackets with any number of parts are taken apart in
// one way: the first part, then the sequence of the others. With label[i, j] the sum over the labels of a span,
//
//   one[i, j] : one part, a bracket or a word.             one[i, i + 1] = label + 1,  one[i, j] = label * two[i, j]
//   two[i, j] : a sequence of at least two parts.          two[i, j] = sum over k of one[i, k] * seq[k, j]
//   seq[i, j] : a sequence of parts.                       seq[i, j] = one[i, j] + two[i, j]
//
// n^3 / 6 steps and n^2 / 2 sums over labels. Scores are relative to label 0, whose scores are summed apart. A bracket
// that must be there (label 0 is forbidden) has no word and no sequence in its place, and spans that cross it are
// empty: then it occurs in every tree that is left.
//
// Sums are of products of exponentials with a scale for each place between words, scale[j] - scale[i] for span (i, j),
// so that a sum over k needs no further factors: scale[j] makes seq[0, j] = 1 when column j is done. Where a number
// gets too small or too large to be exact, everything is computed again in logarithms.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/layout.hpp"
#include "dualfield/structures/parse_trees/span_rows.hpp"
#include "dualfield/structures/structure.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

class SpanChart {
  public:
    SpanChart(std::size_t n_labels, bool rooted) : n_labels_(n_labels), width_(padded(n_labels)), rooted_(rooted) {}

    // Scores of one sentence, [rows][K], multiplied by the factor.
    void read(std::size_t n_rows, const double* own, double factor) {
        n_ = n_words_of(n_rows);
        stride_ = n_ + 1;
        base_ = total_ = 0.0;
        is_bad_ = false;
        excluded_ = n_rows;
        required_.assign(n_rows, 0);
        brackets_.clear();
        double* relative = relative_.require(std::max<std::size_t>(n_rows * width_, 1));
        double* highest = highest_.require(std::max<std::size_t>(n_rows, 1));
        for_spans(n_, [&](std::size_t i, std::size_t j, std::size_t row) {
            const double* scores = own + row * n_labels_;
            double* out = relative + row * width_;
            const double empty = factor * scores[0];
            is_bad_ |= !(empty < kInfinity);
            const bool is_required = empty == -kInfinity || (rooted_ && j - i == n_);
            if (is_required) {
                required_[row] = 1;
                brackets_.push_back({i, j});
            }
            const double shift = is_required ? 0.0 : empty;
            base_ += shift;
            double top = -kInfinity;
            out[0] = -kInfinity;
            for (std::size_t l = 1; l < n_labels_; ++l) {
                const double score = factor * scores[l];
                is_bad_ |= !(score < kInfinity);
                out[l] = score - shift;
                top = std::max(top, out[l]);
            }
            std::fill(out + n_labels_, out + width_, -kInfinity);
            highest[row] = top;
        });
        has_crossing_ = false;
        for (const Bracket& one : brackets_) has_crossing_ |= one.j - one.i > 1 && one.j - one.i < n_;
        if (has_crossing_) mark_crossing(n_, brackets_, crossing_);
    }

    void up_max() {
        is_log_ = is_max_ = true;
        if (begin()) up<true>();
    }
    void up_sum() {
        is_max_ = false;
        if (!begin()) return;
        sum_labels();
        is_log_ = !up_products();
        if (is_log_) up<false>();
    }
    // Leaves the labels of a row out of the next maximum; a row that there is not: of none.
    void exclude(std::size_t row) { excluded_ = row; }

    std::size_t n_words() const { return n_; }
    double total() const { return total_; }
    double base() const { return base_; }
    Status status() const {
        if (is_bad_ || !(total_ < kInfinity)) return Status::bad_number;
        return total_ > -kInfinity ? Status::ok : Status::impossible;
    }
    bool is_required(std::size_t row) const { return required_[row] != 0; }
    std::size_t n_labels() const { return n_labels_; }
    std::size_t row(std::size_t i, std::size_t j) const { return span_row(n_, i, j); }
    const double* relative(std::size_t row) const { return relative_.data() + row * width_; }
    double highest(std::size_t row) const { return highest_.data()[row]; }
    // Exponentials of relative scores, and their sum, as multiples of exp(highest).
    const double* exponentials(std::size_t row) const { return exponentials_.data() + row * width_; }
    double label_sum(std::size_t row) const { return sums_.data()[row]; }

    // Logarithms, or scaled numbers where is_log() is false; those of the same i, or for seq of the same j, follow each
    // other.
    bool is_log() const { return is_log_; }
    double one(std::size_t i, std::size_t j) const { return one_.data()[i * stride_ + j]; }
    double two(std::size_t i, std::size_t j) const { return two_.data()[i * stride_ + j]; }
    double seq(std::size_t i, std::size_t j) const { return seq_.data()[j * stride_ + i]; }
    const double* ones(std::size_t i) const { return one_.data() + i * stride_; }
    const double* seqs(std::size_t j) const { return seq_.data() + j * stride_; }
    std::size_t stride() const { return stride_; }
    bool is_zero(double value) const { return is_log_ ? !(value > -kInfinity) : !(value > 0.0); }
    // part / whole, where part is one of the numbers that whole is the sum of.
    double share(double part, double whole) const {
        if (is_zero(part)) return 0.0;
        return is_log_ ? std::exp(part - whole) : part / whole;
    }
    // The share of a bracket in one[i, i + 1]; the rest is the bare word.
    double bracket_share(std::size_t row) const {
        if (is_required(row)) return 1.0;
        const double top = highest(row);
        if (!(top > -kInfinity)) return 0.0;
        const double log_sum = top + std::log(label_sum(row));
        return 1.0 / (1.0 + std::exp(-log_sum));
    }

  private:
    static constexpr double kSmall = 1e-290, kLarge = 1e290;  // numbers between them are exact
    static constexpr double kRescale = 1e100;

    bool begin() {
        if (is_bad_ || n_ == 0) return false;
        const std::size_t size = stride_ * stride_;
        one_.require(size);
        two_.require(size);
        seq_.require(size);
        return true;
    }
    bool crosses(std::size_t i, std::size_t j) const { return has_crossing_ && crossing_[i * stride_ + j]; }
    void put(std::size_t i, std::size_t j, double one, double two, double seq) {
        one_.data()[i * stride_ + j] = one;
        two_.data()[i * stride_ + j] = two;
        seq_.data()[j * stride_ + i] = seq;
    }

    void sum_labels() {
        const std::size_t n_rows = n_span_rows(n_);
        double *out = exponentials_.require(n_rows * width_), *sums = sums_.require(n_rows);
        for (std::size_t row = 0; row < n_rows; ++row) {
            const double top = highest(row);
            if (top > -kInfinity) {
                sums[row] = routines().exponentials(relative(row), top, width_, out + row * width_);
            } else {
                std::fill_n(out + row * width_, width_, 0.0);
                sums[row] = 0.0;
            }
        }
    }

    static double add_logs(double a, double b) {
        if (a < b) std::swap(a, b);
        return b > -kInfinity ? a + std::log1p(std::exp(b - a)) : a;
    }

    // In logarithms.
    template <bool is_max>
    void up() {
        for (std::size_t j = 1; j <= n_; ++j)
            for (std::size_t i = j; i-- > 0;) {
                if (crosses(i, j)) {
                    put(i, j, -kInfinity, -kInfinity, -kInfinity);
                    continue;
                }
                const std::size_t r = row(i, j);
                const double top = r == excluded_ ? -kInfinity : highest(r);
                const double label = is_max || !(top > -kInfinity) ? top : top + std::log(label_sum(r));
                const double empty = is_required(r) ? -kInfinity : 0.0;
                if (j - i == 1) {
                    const double one = is_max ? std::max(label, empty) : add_logs(label, empty);
                    put(i, j, one, -kInfinity, one);
                } else {
                    const double two = joined<is_max>(i, j), one = label + two, rest = two + empty;
                    put(i, j, one, two, is_max ? std::max(one, rest) : add_logs(one, rest));
                }
            }
        total_ = base_ + seq(0, n_);
    }
    template <bool is_max>
    double joined(std::size_t i, std::size_t j) {
        const double *left = ones(i), *right = seqs(j);
        double top = -kInfinity;
        for (std::size_t k = i + 1; k < j; ++k) top = std::max(top, left[k] + right[k]);
        if (is_max || !(top > -kInfinity)) return top;
        double* terms = terms_.require(padded(stride_));
        const std::size_t n = j - i - 1;
        for (std::size_t k = 0; k < n; ++k) terms[k] = left[i + 1 + k] + right[i + 1 + k];
        std::fill(terms + n, terms + padded(n), -kInfinity);
        return top + std::log(routines().exponentials(terms, top, padded(n), terms));
    }

    // As products; false if a number is too small or too large.
    bool up_products() {
        double scale = 0.0;  // of the place behind word j - 1, less that before word 0
        for (std::size_t j = 1; j <= n_; ++j) {
            for (std::size_t i = j; i-- > 0;) {
                if (crosses(i, j)) {
                    put(i, j, 0.0, 0.0, 0.0);
                    continue;
                }
                const std::size_t r = row(i, j);
                const double label = label_sum(r) > 0.0 ? label_sum(r) * std::exp(highest(r)) : 0.0;
                if (!(label < kLarge) || (label_sum(r) > 0.0 && label < kSmall)) return false;
                const double empty = is_required(r) ? 0.0 : 1.0;
                // Column j is not scaled yet against the one before it, which a word is the step from.
                const double two = j - i > 1 ? products(i, j) : 1.0;
                if (two == 0.0 ? loses(i, j) : two < kSmall) return false;
                const double one = j - i > 1 ? label * two : label + empty;
                if (one < kSmall && label > 0.0 && two > 0.0) return false;
                const double seq = j - i > 1 ? one + two * empty : one;
                put(i, j, one, j - i > 1 ? two : 0.0, seq);
                if (seq > kRescale || one > kRescale) {
                    if (!(seq < kLarge) || !rescale(i, j, seq, scale)) return false;
                }
            }
            double top = seq(0, j);
            for (std::size_t i = 1; i < j && !(top > 0.0); ++i) top = seq(i, j);
            if (top > 0.0 && !rescale(0, j, top, scale)) return false;
        }
        const double all = seq(0, n_);
        total_ = all > 0.0 ? base_ + scale + std::log(all) : -kInfinity;
        return true;
    }
    double products(std::size_t i, std::size_t j) const {
        const double *left = ones(i), *right = seqs(j);
        double sums[4] = {0.0, 0.0, 0.0, 0.0};
        std::size_t k = i + 1;
        for (; k + 4 <= j; k += 4)
            for (std::size_t s = 0; s < 4; ++s) sums[s] += left[k + s] * right[k + s];
        for (; k < j; ++k) sums[0] += left[k] * right[k];
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    // Whether a sum that is zero has terms that are not.
    bool loses(std::size_t i, std::size_t j) const {
        for (std::size_t k = i + 1; k < j; ++k)
            if (one(i, k) > 0.0 && seq(k, j) > 0.0) return true;
        return false;
    }
    // Divides column j from a row on by a number; false if a number that is not zero gets too small or too large.
    bool rescale(std::size_t first, std::size_t j, double by, double& scale) {
        const double factor = 1.0 / by;
        bool is_exact = true;
        const auto scaled = [&](double x) {
            const double y = x * factor;
            is_exact &= x == 0.0 || (y > kSmall && y < kLarge);
            return y;
        };
        for (std::size_t i = first; i < j; ++i) put(i, j, scaled(one(i, j)), scaled(two(i, j)), scaled(seq(i, j)));
        scale += std::log(by);
        return is_exact;
    }

    std::size_t n_labels_, width_, n_ = 0, stride_ = 1, excluded_ = 0;
    bool rooted_, is_bad_ = false, is_log_ = false, is_max_ = false, has_crossing_ = false;
    double base_ = 0.0, total_ = 0.0;
    Buffer relative_, highest_, exponentials_, sums_, one_, two_, seq_, terms_;
    std::vector<char> required_, crossing_;
    std::vector<Bracket> brackets_;
};

}  // namespace dualfield
