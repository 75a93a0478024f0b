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
        is_touched_.assign(index_.n_symbols(), 0);
        is_run_seen_.assign(index_.run_first.size(), 0);
        touched_.clear();
        runs_.clear();
        used_.clear();
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
            const auto symbol = static_cast<std::size_t>(rules_.symbol[rule]);
            if (!(score > -kInfinity)) return;
            touch(rules_.symbol[rule]);
            sums_[symbol] += std::exp(score - highest);
        });
        keep(i, i + 1, highest, 0.0);
        return true;
    }

    // The numbers of a span, from sums_ at the touched symbols.
    void keep(std::size_t i, std::size_t j, double scale, double most) {
        double top = 0.0, least = kInfinity;
        for (const std::int32_t a : touched_) {
            const double sum = sums_[static_cast<std::size_t>(a)];
            top = std::max(top, sum);
            if (sum > 0.0) least = std::min(least, sum);
        }
        chart_.open(i, j);
        if (top > 0.0) {
            const double norm = 1.0 / top;
            cell(i, j) = {scale + most + std::log(top), std::log(least * norm), norm, most, 0, 0};
            for (const std::int32_t a : touched_)
                if (const double sum = sums_[static_cast<std::size_t>(a)]; sum > 0.0) chart_.put(i, j, a, sum * norm);
        }
        forget_touched();
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
        const std::size_t width = chart_.width();
        const double* factors = factors_.data();
        const std::size_t first_place = GrammarChart::rounded_down(i + 1), last_place = GrammarChart::rounded_up(j);
        double* scaled = scaled_.require(std::max<std::size_t>(chart_.n_starts(i), 1) * width);
        chart_.for_starts(i, j, [&](std::size_t start, const double* row) {
            double* out = scaled + start * width;
            for (std::size_t k = first_place; k < last_place; ++k) out[k] = row[k] * factors[k];
        });
        pairs_.clear();
        live_.clear();
        chart_.for_pairs(
            i, j, [&](std::size_t p, std::size_t start, const double* right, std::size_t first, std::size_t last) {
                live_.push_back(static_cast<std::int32_t>(p));
                pairs_.push_back({scaled + start * width, right, nullptr, nullptr, GrammarChart::rounded_down(first),
                                  GrammarChart::rounded_up(last), 0.0, 0.0});
            });
        routines().split_sums(pairs_);
        const std::size_t first_pair = used_.size();
        for (std::size_t at = 0; at < live_.size(); ++at)
            if (const double sum = pairs_[at].value; sum > 0.0) {
                used_.push_back({live_[at], pairs_[at].first, pairs_[at].last, sum});
                add_rules(static_cast<std::size_t>(live_[at]), sum);
            }
        for (const std::int32_t run : runs_) is_run_seen_[static_cast<std::size_t>(run)] = 0;
        runs_.clear();
        double most = 0.0;
        const bool is_whole = add_labels(i, j, most);
        keep(i, j, scale + scores_.highest(), most);
        cell(i, j).first_pair = first_pair;
        cell(i, j).last_pair = used_.size();
        return is_whole;
    }

    // Adds what the rules of a pair make of its sum.
    void add_rules(std::size_t p, double sum) {
        const auto first = static_cast<std::size_t>(index_.pair_first[p]),
                   n = static_cast<std::size_t>(index_.pair_first[p + 1]) - first;
        const double* __restrict weights = scores_.weights() + first;
        const std::int32_t* parent = index_.parent.data() + first;
        const std::int32_t run = index_.run_of[p];
        if (run < 0) {
            for (std::size_t q = 0; q < n; ++q) {
                touch(parent[q]);
                sums_[static_cast<std::size_t>(parent[q])] += weights[q] * sum;
            }
            return;
        }
        if (!is_run_seen_[static_cast<std::size_t>(run)]) {
            is_run_seen_[static_cast<std::size_t>(run)] = 1;
            runs_.push_back(run);
            for (std::size_t q = 0; q < n; ++q) touch(parent[q]);
        }
        double* __restrict out = sums_.data() + parent[0];
        for (std::size_t q = 0; q < n; ++q) out[q] += weights[q] * sum;
    }
    void touch(std::int32_t symbol) {
        char& is_touched = is_touched_[static_cast<std::size_t>(symbol)];
        if (!is_touched) touched_.push_back(symbol);
        is_touched = 1;
    }
    void forget_touched() {
        for (const std::int32_t a : touched_) {
            sums_[static_cast<std::size_t>(a)] = 0.0;
            is_touched_[static_cast<std::size_t>(a)] = 0;
        }
        touched_.clear();
    }

    // Multiplies the sums of a span by what their labels score. False if one gets lost.
    bool add_labels(std::size_t i, std::size_t j, double& most) {
        if (scores_.is_plain() || touched_.empty()) return true;
        scores_.labels_of(i, j, labels_.data());
        most = -kInfinity;
        for (const std::int32_t a : touched_) most = std::max(most, label_score(a));
        if (!(most > -kInfinity)) most = 0.0;
        bool is_whole = true;
        for (const std::int32_t a : touched_) {
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
        bool is_read = scores_.is_plain();
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
            touch(a);
        }
        if (touched_.empty()) return;
        double scale;
        read_factors(i, j, scale);
        gather(i, j);
        routines().split_down(pairs_, factors_.data());
        forget_touched();
    }

    // The pairs that make up the span, with the weights that come from above; counts their rules.
    void gather(std::size_t i, std::size_t j) {
        const std::size_t width = chart_.width();
        pairs_.clear();
        for (std::size_t at = cell(i, j).first_pair; at < cell(i, j).last_pair; ++at) {
            const Used& used = used_[at];
            const auto p = static_cast<std::size_t>(used.pair);
            const double weight = count_rules(p, used.sum);
            if (weight * used.sum < kNothing) continue;
            double *left = chart_.left(i, index_.pair_left[p]), *right = chart_.right(j, index_.pair_right[p]);
            pairs_.push_back({left, right, left + width, right + width, used.first, used.last, weight, 0.0});
        }
    }
    // The weight that comes to a pair from above, through its rules, which are counted.
    double count_rules(std::size_t p, double sum) {
        const auto first = static_cast<std::size_t>(index_.pair_first[p]),
                   n = static_cast<std::size_t>(index_.pair_first[p + 1]) - first;
        const double* __restrict weights = scores_.weights() + first;
        const std::int32_t *parent = index_.parent.data() + first, *rule = index_.rule.data() + first;
        double weight = 0.0;
        if (index_.run_of[p] < 0) {
            for (std::size_t q = 0; q < n; ++q) {
                const double more = weights[q] * sums_[static_cast<std::size_t>(parent[q])];
                weight += more;
                if (shared_) shared_[rule[q]] += more * sum;
            }
            return weight;
        }
        const double* __restrict above = sums_.data() + parent[0];
        double parts[4] = {0.0, 0.0, 0.0, 0.0};
        for (std::size_t q = 0; q + 4 <= n; q += 4)
            for (std::size_t l = 0; l < 4; ++l) parts[l] += weights[q + l] * above[q + l];
        for (std::size_t q = n / 4 * 4; q < n; ++q) weight += weights[q] * above[q];
        weight += (parts[0] + parts[1]) + (parts[2] + parts[3]);
        if (shared_) {
            double* __restrict counts = shared_ + rule[0];
            for (std::size_t q = 0; q < n; ++q) counts[q] += weights[q] * above[q] * sum;
        }
        return weight;
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
    struct Used {
        std::int32_t pair;
        std::uint32_t first, last;
        double sum;
    };
    const GrammarStructure& structure_;
    const GrammarRules& rules_;
    const GrammarIndex& index_;
    const GrammarScores& scores_;
    GrammarChart& chart_;
    std::size_t n_ = 0;
    double inside_ = 0.0;
    double *own_ = nullptr, *shared_ = nullptr;
    std::vector<Cell> cells_;
    std::vector<double> sums_, labels_;
    std::vector<std::int32_t> touched_, live_, runs_;
    std::vector<char> is_touched_, is_run_seen_;
    std::vector<SplitPair> pairs_;
    std::vector<Used> used_;
    Buffer factors_, scaled_;
};

}  // namespace dualfield
