// Questions about a sentence that its chart answers: from the whole sentence down to words.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "dualfield/core/random.hpp"
#include "spans_chart.hpp"

namespace dualfield {

class SpansPass {
  public:
    SpansPass(const Structure& structure, bool rooted) : structure_(structure), chart_(structure.n_labels(), rooted) {}

    void begin(std::size_t example, std::size_t from, const ScoreView& view) {
        chart_.read(structure_.length(example), structure_.view_of(example, from, view).own[0],
                    view.inverse_temperature);
    }
    void up_sum() { chart_.up_sum(); }
    void up_max() { chart_.up_max(); }
    double total() const { return chart_.total(); }
    Status status() const { return chart_.status(); }
    SpanChart& chart() { return chart_; }

    // Probabilities of labels [rows][K], after the sums.
    void spread(double* out) {
        down([](std::size_t, std::size_t, double, double, double, const double*) {});
        const std::size_t n_labels = chart_.n_labels();
        for_spans(chart_.n_words(), [&](std::size_t i, std::size_t j, std::size_t row) {
            const double* exponentials = chart_.exponentials(row);
            const double sum = chart_.label_sum(row), share = j - i == 1 ? chart_.bracket_share(row) : 1.0;
            const double mass = sum > 0.0 ? at(ones_, i, j) * share / sum : 0.0;
            double* own = out + row * n_labels;
            double bracket = 0.0;
            for (std::size_t l = 1; l < n_labels; ++l) {
                own[l] = mass * exponentials[l];
                bracket += own[l];
            }
            own[0] = chart_.is_required(row) ? 0.0 : std::max(0.0, 1.0 - bracket);
        });
    }

    // The entropy is that of every choice on the way down, times how often it is made.
    double entropy() {
        double sum = 0.0;
        down([&](std::size_t i, std::size_t j, double one, double sequence, double both, const double* splits) {
            const std::size_t row = chart_.row(i, j);
            if (j - i == 1) {
                const double share = chart_.bracket_share(row);
                sum += one * (of_two(share) + share * label_entropy(row));
                return;
            }
            const double whole = chart_.seq(i, j);
            if (sequence > 0.0) sum += sequence * of_two(chart_.share(chart_.one(i, j), whole));
            if (one > 0.0) sum += one * label_entropy(row);
            if (both > 0.0)
                for (std::size_t k = i + 1; k < j; ++k) sum += both * of_one(splits[k]);
        });
        return sum;
    }

    // A tree drawn from the distribution, after the sums; uniform() is in [0, 1).
    template <class Uniform>
    void draw(Uniform uniform, std::int32_t* labels) {
        trace(
            labels,
            [&](std::size_t i, std::size_t j) {  // whether a sequence is one bracket
                return uniform() < chart_.share(chart_.one(i, j), chart_.seq(i, j));
            },
            [&](std::size_t i, std::size_t j) {  // where the first part ends
                double* splits = splits_.require(chart_.stride());
                fill_splits(i, j, splits);
                return i + 1 + draw_index({splits + i + 1, j - i - 1}, uniform());
            },
            [&](std::size_t row) {  // the label of a bracket
                return draw_index({chart_.exponentials(row), chart_.n_labels()}, uniform());
            },
            [&](std::size_t row) { return uniform() < chart_.bracket_share(row); });  // whether a word has one
    }

    // The best tree, after the maxima.
    void decode(std::int32_t* labels) {
        trace(
            labels, [&](std::size_t i, std::size_t j) { return chart_.one(i, j) > chart_.two(i, j); },
            [&](std::size_t i, std::size_t j) {
                const double *left = chart_.ones(i), *right = chart_.seqs(j);
                std::size_t best = i + 1;
                for (std::size_t k = i + 2; k < j; ++k)
                    if (left[k] + right[k] > left[best] + right[best]) best = k;
                return best;
            },
            [&](std::size_t row) { return best_label(row); },
            [&](std::size_t row) { return chart_.highest(row) > 0.0; });
    }

    // The highest score of a tree for each label of each row, [rows][K], after the maxima, which it forgets.
    void spread_max(double* out) {
        const std::size_t n = chart_.n_words(), n_labels = chart_.n_labels(), n_rows = n_span_rows(n);
        const double highest = chart_.total();
        std::vector<std::int32_t> best(n_rows);
        decode(best.data());
        outside_max();
        for_spans(n, [&](std::size_t i, std::size_t j, std::size_t row) {
            const double inside = j - i == 1 ? 0.0 : chart_.two(i, j);
            const double* scores = chart_.relative(row);
            const double rest = chart_.base() + inside + at(ones_, i, j);
            for (std::size_t l = 1; l < n_labels; ++l) out[row * n_labels + l] = scores[l] + rest;
            out[row * n_labels] = chart_.is_required(row) ? -kInfinity : highest;
        });
        // Without one of its brackets the best tree is another one: found anew for each of them.
        for (std::size_t row = 0; row < n_rows; ++row)
            if (best[row] != 0 && !chart_.is_required(row)) {
                chart_.exclude(row);
                chart_.up_max();
                out[row * n_labels] = chart_.total();
            }
        chart_.exclude(n_rows);
    }

    // splits[k]: the share of two[i, j] whose first part ends at k.
    void fill_splits(std::size_t i, std::size_t j, double* splits) const {
        const double *left = chart_.ones(i), *right = chart_.seqs(j), whole = chart_.two(i, j);
        if (chart_.is_log()) {
            for (std::size_t k = i + 1; k < j; ++k) splits[k] = std::exp(left[k] + right[k] - whole);
            return;
        }
        const double factor = 1.0 / whole;
        for (std::size_t k = i + 1; k < j; ++k) splits[k] = left[k] * right[k] * factor;
    }

  private:
    double& at(Buffer& buffer, std::size_t i, std::size_t j) { return buffer.data()[i * chart_.stride() + j]; }
    double& turned(Buffer& buffer, std::size_t i, std::size_t j) { return buffer.data()[j * chart_.stride() + i]; }
    void clear(Buffer& buffer, double value) {
        const std::size_t size = chart_.stride() * chart_.stride();
        std::fill_n(buffer.require(size), size, value);
    }

    static double of_one(double p) { return p > 0.0 ? -p * std::log(p) : 0.0; }
    static double of_two(double p) { return of_one(p) + of_one(1.0 - p); }
    double label_entropy(std::size_t row) const {
        const double sum = chart_.label_sum(row);
        double found = 0.0;
        for (std::size_t l = 1; l < chart_.n_labels(); ++l) found += of_one(chart_.exponentials(row)[l] / sum);
        return found;
    }
    std::size_t best_label(std::size_t row) const {
        const double* scores = chart_.relative(row);
        std::size_t best = 1;
        while (scores[best] < chart_.highest(row)) ++best;
        return best;
    }

    // Probabilities of the entries of the chart, after the sums. Calls use(i, j, one, seq, two, splits) with the
    // probability that the entry is used as one part, as a sequence (of which one part is counted in `one`), as two
    // parts or more, and how these are split; the wider spans before those in them.
    template <class Use>
    void down(Use use) {
        clear(ones_, 0.0);
        clear(seqs_, 0.0);
        const std::size_t n = chart_.n_words();
        if (n == 0) return;
        double* splits = splits_.require(chart_.stride());
        turned(seqs_, 0, n) = 1.0;
        for (std::size_t j = n; j > 0; --j)
            for (std::size_t i = 0; i < j; ++i) {
                double& one = at(ones_, i, j);
                const double sequence = turned(seqs_, i, j);
                if (one <= 0.0 && sequence <= 0.0) continue;
                if (j - i == 1) {
                    one += sequence;
                    use(i, j, one, sequence, 0.0, splits);
                    continue;
                }
                const double whole = chart_.seq(i, j);
                const double share = sequence > 0.0 ? chart_.share(chart_.one(i, j), whole) : 0.0;
                double both = one + sequence;
                if (sequence > 0.0) {
                    // A bracket that must be there is no bare sequence.
                    const double rest =
                        chart_.is_required(chart_.row(i, j)) ? 0.0 : chart_.share(chart_.two(i, j), whole);
                    one += sequence * share;
                    both = one + sequence * rest;
                }
                fill_splits(i, j, splits);
                use(i, j, one, sequence, both, splits);
                double *left = ones_.data() + i * chart_.stride(), *right = seqs_.data() + j * chart_.stride();
                for (std::size_t k = i + 1; k < j; ++k) {
                    const double p = both * splits[k];
                    left[k] += p;
                    right[k] += p;
                }
            }
    }

    // ones_: the best score of what is around a span that is one part.
    void outside_max() {
        clear(ones_, -kInfinity);
        clear(seqs_, -kInfinity);
        const std::size_t n = chart_.n_words();
        if (n == 0) return;
        turned(seqs_, 0, n) = 0.0;
        for (std::size_t j = n; j > 0; --j)
            for (std::size_t i = 0; i < j; ++i) {
                double& one = at(ones_, i, j);
                const double sequence = turned(seqs_, i, j);
                one = std::max(one, sequence);
                if (j - i == 1 || !(chart_.two(i, j) > -kInfinity)) continue;
                const std::size_t row = chart_.row(i, j);
                const double both =
                    std::max(one + chart_.highest(row), chart_.is_required(row) ? -kInfinity : sequence);
                double *left = ones_.data() + i * chart_.stride(), *right = seqs_.data() + j * chart_.stride();
                const double *one_part = chart_.ones(i), *parts = chart_.seqs(j);
                for (std::size_t k = i + 1; k < j; ++k) {
                    left[k] = std::max(left[k], both + parts[k]);
                    right[k] = std::max(right[k], both + one_part[k]);
                }
            }
    }

    // Writes the tree that choices lead to.
    template <class IsBracket, class Split, class Label, class HasLabel>
    void trace(std::int32_t* labels, IsBracket is_bracket, Split split, Label label, HasLabel has_label) {
        const std::size_t n = chart_.n_words();
        std::fill_n(labels, n_span_rows(n), 0);
        todo_.clear();
        if (n > 0) todo_.push_back({0, n, true});
        while (!todo_.empty()) {
            const Todo span = todo_.back();
            todo_.pop_back();
            const std::size_t row = chart_.row(span.i, span.j);
            const bool must = chart_.is_required(row);
            if (span.j - span.i == 1) {
                if (must || has_label(row)) labels[row] = static_cast<std::int32_t>(label(row));
                continue;
            }
            if (must || !span.is_sequence || is_bracket(span.i, span.j))
                labels[row] = static_cast<std::int32_t>(label(row));
            const std::size_t k = split(span.i, span.j);
            todo_.push_back({k, span.j, true});
            todo_.push_back({span.i, k, false});
        }
    }

    struct Todo {
        std::size_t i, j;
        bool is_sequence;
    };

    const Structure& structure_;
    SpanChart chart_;
    Buffer ones_, seqs_, splits_;
    std::vector<Todo> todo_;
};

}  // namespace dualfield
