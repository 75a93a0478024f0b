// Inside and outside sums of a grammar as products, with one logarithm for each span.
//
// The numbers of a span are divided by their largest one. They are products only where none can get lost: a bound on
// the smallest product of a span, from the smallest numbers of its parts, tells before. Otherwise up() gives up, and
// grammar_logs.hpp takes over. Sums from above may lose what has a probability below kNothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "grammar_chart.hpp"
#include "grammar_scores.hpp"

namespace dualfield {

class GrammarProducts {
  public:
    GrammarProducts(const GrammarStructure& structure, const GrammarScores& scores, GrammarChart& chart)
        : structure_(structure), rules_(structure.rules()), index_(structure.index()), scores_(scores), chart_(chart) {}

    // False: a product may have been lost.
    bool up() {
        n_ = scores_.n_words();
        chart_.begin(index_, n_, 0.0);
        cells_.assign((n_ + 1) * (n_ + 1), {});
        sums_.assign(index_.n_symbols(), 0.0);
        touched_.resize(index_.n_symbols() + 1);
        pairs_.resize(index_.n_pairs());
        weights_.resize(index_.n_pairs());
        n_used_ = 0;
        labels_.resize(rules_.n_labels);
        for (std::size_t i = 0; i < n_; ++i)
            if (!read_word(i)) return false;
        for (std::size_t width = 2; width <= n_; ++width)
            for (std::size_t i = 0; i + width <= n_; ++i)
                if (scores_.may_be(i, i + width) && !join(i, i + width)) return false;
        double highest = -kInfinity, sum = 0.0;
        for (std::size_t r = 0; r < rules_.roots.size(); ++r) highest = std::max(highest, root(r));
        if (highest > -kInfinity)
            for (std::size_t r = 0; r < rules_.roots.size(); ++r) sum += std::exp(root(r) - highest);
        inside_ = highest > -kInfinity ? highest + std::log(sum) : -kInfinity;
        return true;
    }
    double total() const { return inside_ + scores_.base(); }

    // Probabilities of own and shared parts; shared may be null.
    void down(double* own, double* shared) {
        own_ = own;
        shared_ = shared;
        chart_.clear_above(0.0);
        std::ranges::fill(sums_, 0.0);
        factors_.require(chart_.width());
        std::fill_n(own, n_ * (n_ + 1) / 2 * rules_.n_labels, 0.0);
        if (shared) std::fill_n(shared, structure_.parts().n_shared, 0.0);
        for (std::size_t r = 0; r < rules_.roots.size(); ++r) {
            const double value = root(r);
            if (!(value > -kInfinity)) continue;
            const double p = std::exp(value - inside_), in = chart_.at(0, n_, rules_.roots[r]);
            chart_.above_left(0, n_, rules_.roots[r]) += p / in;
            if (shared) shared[structure_.root_part(r)] += p;
        }
        for (std::size_t width = n_; width >= 2; --width)
            for (std::size_t i = 0; i + width <= n_; ++i) part(i, i + width);
        for (std::size_t i = 0; i < n_; ++i) spread_word(i);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = i + 2; j <= n_; ++j) add_none(own + scores_.row(i, j) * rules_.n_labels, i, j);
    }

  private:
    struct Cell {
        double scale = -kInfinity;                  // of its numbers; -inf: it has none
        double least = 0.0;                         // logarithm of its smallest number
        double norm = 1.0;                          // by which its sums were multiplied
        double most = 0.0;                          // label score that they were divided by
        std::size_t first_pair = 0, last_pair = 0;  // of the pairs that it is made of
    };
    static constexpr double kLeast = -650.0;
    static constexpr double kNothing = 1e-40;

    Cell& cell(std::size_t i, std::size_t j) { return cells_[i * (n_ + 1) + j]; }
    double root(std::size_t r) {
        const double in = chart_.at(0, n_, rules_.roots[r]);
        return n_ > 0 && in > 0.0 ? std::log(in) + scores_.root(r) + cell(0, n_).scale : -kInfinity;
    }

    bool read_word(std::size_t i) {
        double highest = -kInfinity, lowest = kInfinity;
        scores_.for_lexical(i, [&](std::size_t, double score) {
            highest = std::max(highest, score);
            if (score > -kInfinity) lowest = std::min(lowest, score);
        });
        if (!(highest > -kInfinity)) return true;
        if (lowest - highest < kLeast) return false;
        scores_.for_lexical(i, [&](std::size_t rule, double score) {
            if (score > -kInfinity) add(static_cast<std::size_t>(rules_.symbol[rule]), std::exp(score - highest));
        });
        keep(i, i + 1, highest, 0.0);
        return true;
    }

    // Symbols get into touched_ when their sums become more than zero.
    void add(std::size_t symbol, double more) {
        double& sum = sums_[symbol];
        const bool was_nothing = sum == 0.0;
        sum += more;
        touched_[n_touched_] = static_cast<std::int32_t>(symbol);
        n_touched_ += was_nothing & (sum > 0.0);  // no branch, which would often be mistaken
    }
    void add_run(const RunTask& task, std::span<const UsedPair> pairs, std::size_t first) {
        const std::size_t before = n_touched_;
        for (std::size_t a = first; a < first + task.n; ++a)
            if (sums_[a] == 0.0) touched_[n_touched_++] = static_cast<std::int32_t>(a);
        routines().run_up(task, pairs, sums_.data() + first);
        std::size_t n_new = 0;
        for (const std::int32_t a : touched().subspan(before)) {
            touched_[before + n_new] = a;
            n_new += sums_[static_cast<std::size_t>(a)] > 0.0;
        }
        n_touched_ = before + n_new;
    }
    std::span<const std::int32_t> touched() const { return {touched_.data(), n_touched_}; }

    // The numbers of a span, from sums_ at the touched symbols.
    void keep(std::size_t i, std::size_t j, double scale, double most) {
        double top = 0.0, least = kInfinity;
        for (const std::int32_t a : touched()) {
            const double sum = sums_[static_cast<std::size_t>(a)];
            top = std::max(top, sum);
            if (sum > 0.0) least = std::min(least, sum);
        }
        chart_.open(i, j);
        const double norm = 1.0 / top;
        if (top > 0.0) cell(i, j) = {scale + most + std::log(top), std::log(least * norm), norm, most, 0, 0};
        for (const std::int32_t a : touched()) {
            double& sum = sums_[static_cast<std::size_t>(a)];
            if (sum > 0.0) chart_.put(i, j, a, sum * norm);
            sum = 0.0;
        }
        n_touched_ = 0;
    }

    // factors_[k] = exp(scales of both parts - scale), 0 outside of the span. False if a product may get lost.
    bool read_factors(std::size_t i, std::size_t j, double& scale) {
        const std::size_t width = chart_.width();
        double *factors = factors_.require(width), least = kInfinity;
        scale = -kInfinity;
        std::fill_n(factors, width, -kInfinity);
        for (std::size_t k = i + 1; k < j; ++k) {
            const Cell &a = cell(i, k), &b = cell(k, j);
            factors[k] = a.scale + b.scale;
            scale = std::max(scale, factors[k]);
            if (factors[k] > -kInfinity) least = std::min(least, factors[k] + a.least + b.least);
        }
        if (!(scale > -kInfinity)) return true;
        if (least - scale + scores_.lowest() - scores_.highest() < kLeast) return false;
        routines().exponentials(factors, scale, width, factors);
        return true;
    }

    bool join(std::size_t i, std::size_t j) {
        double scale;
        if (!read_factors(i, j, scale)) return false;
        if (!(scale > -kInfinity)) return true;
        const std::span<const GrammarChart::Meeting> met = chart_.meetings(i, j);
        list_pairs(i, j, met);
        routines().split_sums({pairs_.data(), met.size()});
        const std::size_t first_pair = n_used_;
        used_.resize(std::max(used_.size(), first_pair + met.size()));
        UsedPair* to = used_.data() + first_pair;
        for (std::size_t at = 0; at < met.size(); ++at) {
            const SplitPair& pair = pairs_[at];
            *to = {met[at].pair, static_cast<std::uint16_t>(pair.first / kLanes),
                   static_cast<std::uint16_t>(pair.last / kLanes), pair.value};
            to += pair.value > 0.0;
        }
        n_used_ = static_cast<std::size_t>(to - used_.data());
        for_rules(
            first_pair, n_used_,
            [&](std::size_t first, std::size_t last, double sum, double&) {
                for (std::size_t q = first; q < last; ++q) add(parent(q), scores_.weights()[q] * sum);
            },
            [&](const RunTask& task, std::span<const UsedPair> run, std::size_t first) { add_run(task, run, first); });
        double most = 0.0;
        const bool is_whole = add_labels(i, j, most);
        keep(i, j, scale + scores_.highest(), most);
        cell(i, j).first_pair = first_pair;
        cell(i, j).last_pair = n_used_;
        return is_whole;
    }

    // Makes pairs_ of those that meet; the rows of left symbols are multiplied by the factors.
    void list_pairs(std::size_t i, std::size_t j, std::span<const GrammarChart::Meeting> met) {
        const std::size_t width = chart_.width(), first = (i + 1) / kLanes * kLanes, last = padded(j);
        const std::int32_t *lefts = index_.pair_left.data(), *rights = index_.pair_right.data();
        const double* factors = factors_.data();
        double* scaled = scaled_.require(width * (1 + index_.n_symbols()));
        SplitPair* pairs = pairs_.data();
        std::int32_t known = -1;
        for (std::size_t at = 0; at < met.size(); ++at) {
            const auto p = static_cast<std::size_t>(met[at].pair);
            if (lefts[p] != known) {
                scaled += known < 0 ? 0 : width;
                known = lefts[p];
                const double* row = chart_.left(i, known);
                for (std::size_t k = first; k < last; ++k) scaled[k] = row[k] * factors[k];
            }
            pairs[at].left = scaled;
            pairs[at].right = chart_.right(j, rights[p]);
            pairs[at].first = GrammarChart::first_place(met[at]);
            pairs[at].last = GrammarChart::last_place(met[at]);
        }
    }

    std::size_t parent(std::size_t q) const { return static_cast<std::size_t>(index_.parent[q]); }
    // one(first rule, behind its last one, sum, weight) for single pairs, many(task, pairs, first parent) for those of
    // a run; weights are for sums from above.
    template <class One, class Many>
    void for_rules(std::size_t begin, std::size_t end, One one, Many many) {
        for (std::size_t at = begin, next; at < end; at = next) {
            const auto p = static_cast<std::size_t>(used_[at].pair);
            const auto first = static_cast<std::size_t>(index_.pair_first[p]),
                       last = static_cast<std::size_t>(index_.pair_first[p + 1]);
            const std::int32_t run = index_.run_of[p];
            next = at + 1;
            if (run < 0) {
                one(first, last, used_[at].sum, weights_[at - begin]);
                continue;
            }
            while (next < end && index_.run_of[static_cast<std::size_t>(used_[next].pair)] == run) ++next;
            many(RunTask{index_.pair_first.data(), index_.rule.data(), scores_.weights(), last - first,
                         weights_.data() + (at - begin)},
                 std::span<const UsedPair>(used_.data() + at, next - at), parent(first));
        }
    }

    // Multiplies the sums of a span by what their labels score. False if one gets lost.
    bool add_labels(std::size_t i, std::size_t j, double& most) {
        if (scores_.is_plain() || n_touched_ == 0) return true;
        scores_.labels_of(i, j, labels_.data());
        most = -kInfinity;
        for (const std::int32_t a : touched()) most = std::max(most, label_score(a));
        if (!(most > -kInfinity)) most = 0.0;
        bool is_whole = true;
        for (const std::int32_t a : touched()) {
            double& sum = sums_[static_cast<std::size_t>(a)];
            const double score = label_score(a), before = sum;
            sum *= std::exp(score - most);
            if (score > -kInfinity && before > 0.0 && sum < kSmall) is_whole = false;
        }
        return is_whole;
    }
    double label_score(std::int32_t symbol) const {
        return labels_[static_cast<std::size_t>(rules_.label[static_cast<std::size_t>(symbol)])];
    }

    // From a span to its parts.
    void part(std::size_t i, std::size_t j) {
        double* own = own_ + scores_.row(i, j) * rules_.n_labels;
        const Cell& here = cell(i, j);
        bool is_read = scores_.is_plain(), is_any = false;
        for (const std::int32_t a : chart_.members(i, j)) {
            const double above = chart_.above_left(i, j, a) + chart_.above_right(i, j, a);
            const double p = chart_.at(i, j, a) * above;
            if (p < kNothing) continue;
            own[rules_.label[static_cast<std::size_t>(a)]] += p;
            if (!is_read) {
                scores_.labels_of(i, j, labels_.data());
                is_read = true;
            }
            const double by_label = scores_.is_plain() ? 1.0 : std::exp(label_score(a) - here.most);
            sums_[static_cast<std::size_t>(a)] = above * here.norm * by_label;
            is_any = true;
        }
        if (!is_any) return;
        double scale;
        read_factors(i, j, scale);
        routines().split_down({pairs_.data(), gather(i, j)}, factors_.data(), chart_.width());
        for (const std::int32_t a : chart_.members(i, j)) sums_[static_cast<std::size_t>(a)] = 0.0;
    }

    // The number of pairs that make up the span, with the weights that come from above; counts their rules.
    std::size_t gather(std::size_t i, std::size_t j) {
        const Cell& here = cell(i, j);
        for_rules(
            here.first_pair, here.last_pair,
            [&](std::size_t first, std::size_t last, double sum, double& weight) {
                const double* weights = scores_.weights();
                weight = 0.0;
                for (std::size_t q = first; q < last; ++q) weight += weights[q] * sums_[parent(q)];
                if (!shared_ || !(weight > 0.0)) return;
                for (std::size_t q = first; q < last; ++q)
                    shared_[index_.rule[q]] += weights[q] * sums_[parent(q)] * sum;
            },
            [&](const RunTask& task, std::span<const UsedPair> run, std::size_t first) {
                routines().run_down(task, run, sums_.data() + first, shared_);
            });
        const std::int32_t *lefts = index_.pair_left.data(), *rights = index_.pair_right.data();
        const UsedPair* used = used_.data() + here.first_pair;
        const double* weights = weights_.data();
        SplitPair* to = pairs_.data();
        for (std::size_t at = 0, n = here.last_pair - here.first_pair; at < n; ++at) {
            const UsedPair pair = used[at];
            const double weight = weights[at];
            if (weight * pair.sum < kNothing) continue;
            const auto p = static_cast<std::size_t>(pair.pair);
            double *left = chart_.left(i, lefts[p]), *right = chart_.right(j, rights[p]);
            *to++ = {left, right, static_cast<std::uint32_t>(pair.first * kLanes),
                     static_cast<std::uint32_t>(pair.last * kLanes), weight};
        }
        return static_cast<std::size_t>(to - pairs_.data());
    }

    void spread_word(std::size_t i) {
        double* own = own_ + scores_.row(i, i + 1) * rules_.n_labels;
        const Cell& here = cell(i, i + 1);
        if (!(here.scale > -kInfinity)) return;
        scores_.for_lexical(i, [&](std::size_t rule, double score) {
            if (!(score > -kInfinity)) return;
            const std::int32_t a = rules_.symbol[rule];
            const double above = chart_.above_left(i, i + 1, a) + chart_.above_right(i, i + 1, a);
            const double p = above * std::exp(score - here.scale);
            own[rules_.terminal_label[rule]] += p;
            if (shared_) shared_[structure_.lexical_part(rule)] += p;
        });
    }

    // Label 0 is there where no other one is: also where the derivation has no such span.
    void add_none(double* own, std::size_t i, std::size_t j) const {
        double sum = 0.0;
        for (std::size_t k = 1; k < rules_.n_labels; ++k) sum += own[k];
        own[0] = scores_.is_required(i, j) ? 0.0 : std::max(1.0 - sum, 0.0);
    }

    static constexpr double kSmall = 1e-300;
    const GrammarStructure& structure_;
    const GrammarRules& rules_;
    const GrammarIndex& index_;
    const GrammarScores& scores_;
    GrammarChart& chart_;
    std::size_t n_ = 0;
    double inside_ = 0.0;
    double *own_ = nullptr, *shared_ = nullptr;
    std::vector<Cell> cells_;
    std::vector<double> sums_, labels_, weights_;
    std::vector<std::int32_t> touched_;  // [symbols + 1]: n_touched_ of them, and one that is written in vain
    std::size_t n_touched_ = 0;
    std::vector<SplitPair> pairs_;
    std::vector<UsedPair> used_;  // n_used_ of them; the rest is memory from sentences before
    std::size_t n_used_ = 0;
    Buffer factors_, scaled_;
};

}  // namespace dualfield
