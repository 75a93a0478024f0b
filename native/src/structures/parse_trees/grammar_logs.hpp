// Inside and outside passes of a grammar in logarithms, with maxima or with sums of exponentials, and what is found by
// walking down from the top: the best derivation, draws, entropies, maxima by label.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "dualfield/core/random.hpp"
#include "grammar_chart.hpp"
#include "grammar_scores.hpp"

namespace dualfield {

class GrammarLogs {
  public:
    GrammarLogs(const GrammarStructure& structure, const GrammarScores& scores, GrammarChart& chart)
        : structure_(structure), rules_(structure.rules()), index_(structure.index()), scores_(scores), chart_(chart) {}

    // A way to make a symbol of a span: a binary rule and where its parts meet, or a lexical rule.
    struct Way {
        std::size_t rule, split;
        double score;  // without the label's
    };

    template <bool is_max>
    void up() {
        n_ = scores_.n_words();
        chart_.begin(index_, n_, -kInfinity);
        values_.assign(index_.n_symbols(), -kInfinity);
        touched_.resize(index_.n_symbols() + 1);
        labels_.resize(rules_.n_labels);
        for (std::size_t i = 0; i < n_; ++i) {
            scores_.for_lexical(i, [&](std::size_t rule, double score) { add<is_max>(rules_.symbol[rule], score); });
            keep(i, i + 1);
        }
        for (std::size_t width = 2; width <= n_; ++width)
            for (std::size_t i = 0; i + width <= n_; ++i)
                if (scores_.may_be(i, i + width)) join<is_max>(i, i + width);
        inside_ = -kInfinity;
        for (std::size_t r = 0; r < rules_.roots.size(); ++r) inside_ = joined<is_max>(inside_, root(r));
    }
    double total() const { return inside_ + scores_.base(); }
    double inside() const { return inside_; }  // of all derivations, without what label 0 scores
    double root(std::size_t r) const {
        return n_ > 0 ? chart_.at(0, n_, rules_.roots[r]) + scores_.root(r) : -kInfinity;
    }
    std::size_t n_words() const { return n_; }

    // After up: what surrounds each symbol of each span scores.
    template <bool is_max>
    void down() {
        chart_.clear_above(-kInfinity);
        for (std::size_t r = 0; r < rules_.roots.size(); ++r)
            if (root(r) > -kInfinity) {
                double& above = chart_.above_left(0, n_, rules_.roots[r]);
                above = joined<is_max>(above, scores_.root(r));
            }
        for (std::size_t width = n_; width >= 2; --width)
            for (std::size_t i = 0; i + width <= n_; ++i) {
                scores_.labels_of(i, i + width, labels_.data());
                for (const std::int32_t a : chart_.members(i, i + width)) part<is_max>(i, i + width, a);
            }
    }

    // Probabilities of own and shared parts, after both sums; shared may be null.
    void spread(double* own, double* shared) {
        std::fill_n(own, n_ * (n_ + 1) / 2 * rules_.n_labels, 0.0);
        if (shared) std::fill_n(shared, structure_.parts().n_shared, 0.0);
        for_labels<false>([&](std::size_t at, double score) { own[at] += std::exp(score - inside_); });
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = i + 2; j <= n_; ++j) {
                double *row = own + scores_.row(i, j) * rules_.n_labels, sum = 0.0;
                for (std::size_t k = 1; k < rules_.n_labels; ++k) sum += row[k];
                row[0] = scores_.is_required(i, j) ? 0.0 : std::max(1.0 - sum, 0.0);
            }
        if (!shared) return;
        for (std::size_t r = 0; r < rules_.roots.size(); ++r)
            shared[structure_.root_part(r)] += std::exp(root(r) - inside_);
        for_ways([&](std::size_t part, double p, double) { shared[part] += p; });
    }

    // The highest score by label, after both maxima. Where there is no bracket, the derivation has a symbol of label 0
    // there, or a span that crosses.
    void spread_max(double* own) {
        const std::size_t n_labels = rules_.n_labels;
        std::fill_n(own, n_ * (n_ + 1) / 2 * n_labels, -kInfinity);
        std::vector<double> best((n_ + 1) * (n_ + 1), -kInfinity);
        for_labels<true>([&](std::size_t at, double score) { own[at] = std::max(own[at], score + scores_.base()); });
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = i + 1; j <= n_; ++j) {
                const double* row = own + scores_.row(i, j) * n_labels;
                best[i * (n_ + 1) + j] = *std::max_element(row, row + n_labels);
            }
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = i + 2; j <= n_; ++j) {
                if (scores_.is_required(i, j)) continue;
                double& none = own[scores_.row(i, j) * n_labels];
                for (std::size_t k = i + 1; k < j; ++k) {
                    for (std::size_t before = 0; before < i; ++before)
                        none = std::max(none, best[before * (n_ + 1) + k]);
                    for (std::size_t behind = j + 1; behind <= n_; ++behind)
                        none = std::max(none, best[k * (n_ + 1) + behind]);
                }
            }
    }

    // After both sums: what is unknown of each choice, times how likely it is to be made.
    double entropy() {
        double sum = 0.0;
        for (std::size_t r = 0; r < rules_.roots.size(); ++r)
            if (const double log = root(r) - inside_; log > -kInfinity) sum -= std::exp(log) * log;
        for_ways([&](std::size_t, double p, double log) { sum -= p * log; });
        return std::max(sum, 0.0);
    }

    // After the sums from below: draws one choice after another.
    template <class Uniform>
    void draw(Uniform uniform, std::int32_t* labels) {
        const auto drawn = [&](std::span<const Way> ways) { return draw_way(ways, uniform()); };
        walk(labels, drawn);
    }
    // After the maxima from below.
    void decode(std::int32_t* labels) { walk(labels, first_best); }

    // use(way) for every way to make a symbol of a span; in the order of rules, then of places.
    template <class Use>
    void list_ways(std::size_t i, std::size_t j, std::int32_t symbol, Use use) const {
        if (j == i + 1) {
            scores_.for_lexical(i, [&](std::size_t rule, double score) {
                if (rules_.symbol[rule] == symbol && score > -kInfinity) use(Way{rule, i, score});
            });
            return;
        }
        const auto a = static_cast<std::size_t>(symbol);
        for (auto at = index_.by_parent[a]; at < index_.by_parent[a + 1]; ++at) {
            const auto rule = static_cast<std::size_t>(index_.parents[static_cast<std::size_t>(at)]);
            const double *left = chart_.left(i, rules_.left[rule]), *right = chart_.right(j, rules_.right[rule]);
            const double score = scores_.binary()[index_.place_of[rule]];
            if (!left || !right || !(score > -kInfinity)) continue;
            for (std::size_t k = i + 1; k < j; ++k)
                if (const double both = left[k] + right[k]; both > -kInfinity) use(Way{rule, k, score + both});
        }
    }
    // The first one of the highest score.
    static std::size_t first_best(std::span<const Way> ways) {
        std::size_t best = 0;
        for (std::size_t at = 1; at < ways.size(); ++at)
            if (ways[at].score > ways[best].score) best = at;
        return best;
    }
    void write(std::size_t i, std::size_t j, std::int32_t symbol, const Way& way, std::int32_t* labels) const {
        labels[scores_.row(i, j)] =
            j == i + 1 ? rules_.terminal_label[way.rule] : rules_.label[static_cast<std::size_t>(symbol)];
    }

  private:
    template <bool is_max>
    static double joined(double a, double b) {
        const double high = std::max(a, b);
        if constexpr (is_max) return high;
        if (!(high > -kInfinity)) return high;
        return high + std::log1p(std::exp(std::min(a, b) - high));
    }
    template <bool is_max>
    void add(std::int32_t symbol, double score) {
        double& value = values_[static_cast<std::size_t>(symbol)];
        touched_[n_touched_] = symbol;
        n_touched_ += (value == -kInfinity) & (score > -kInfinity);  // no branch, which would often be mistaken
        value = joined<is_max>(value, score);
    }
    std::span<const std::int32_t> touched() const { return {touched_.data(), n_touched_}; }
    void keep(std::size_t i, std::size_t j) {
        chart_.open(i, j);
        for (const std::int32_t a : touched()) {
            double& value = values_[static_cast<std::size_t>(a)];
            if (value > -kInfinity) chart_.put(i, j, a, value);
            value = -kInfinity;
        }
        n_touched_ = 0;
    }

    template <bool is_max>
    void join(std::size_t i, std::size_t j) {
        const std::span<const GrammarChart::Meeting> met = chart_.meetings(i, j);
        pairs_.clear();
        for (const GrammarChart::Meeting& pair : met) {
            const auto p = static_cast<std::size_t>(pair.pair);
            pairs_.push_back({chart_.left(i, index_.pair_left[p]), chart_.right(j, index_.pair_right[p]),
                              GrammarChart::first_place(pair), GrammarChart::last_place(pair), 0.0});
        }
        routines().split_maxima(pairs_);
        for (std::size_t at = 0; at < met.size(); ++at) {
            SplitPair& pair = pairs_[at];
            if (!(pair.value > -kInfinity)) continue;
            if constexpr (!is_max) {
                double sum = 0.0;
                for (std::size_t k = pair.first; k < pair.last; ++k)
                    sum += std::exp(pair.left[k] + pair.right[k] - pair.value);
                pair.value += std::log(sum);
            }
            const auto p = static_cast<std::size_t>(met[at].pair);
            for (auto q = static_cast<std::size_t>(index_.pair_first[p]),
                      end = static_cast<std::size_t>(index_.pair_first[p + 1]);
                 q < end; ++q)
                add<is_max>(index_.parent[q], scores_.binary()[q] + pair.value);
        }
        if (!scores_.is_plain() && n_touched_ > 0) {
            scores_.labels_of(i, j, labels_.data());
            for (const std::int32_t a : touched()) values_[static_cast<std::size_t>(a)] += label_score(a);
        }
        keep(i, j);
    }
    double label_score(std::int32_t symbol) const {
        return labels_[static_cast<std::size_t>(rules_.label[static_cast<std::size_t>(symbol)])];
    }

    template <bool is_max>
    double above(std::size_t i, std::size_t j, std::int32_t a) const {
        return joined<is_max>(chart_.above_left(i, j, a), chart_.above_right(i, j, a));
    }
    template <bool is_max>
    void part(std::size_t i, std::size_t j, std::int32_t a) {
        const double from = above<is_max>(i, j, a) + label_score(a);
        if (!(from > -kInfinity)) return;
        list_ways(i, j, a, [&](const Way& way) {
            const std::int32_t b = rules_.left[way.rule], c = rules_.right[way.rule];
            const double here = from + scores_.binary()[index_.place_of[way.rule]];
            double &left = chart_.above_left(i, way.split, b), &right = chart_.above_right(way.split, j, c);
            left = joined<is_max>(left, here + chart_.at(way.split, j, c));
            right = joined<is_max>(right, here + chart_.at(i, way.split, b));
        });
    }

    // use(place of the label among own parts, score of the derivations that have it by one symbol or lexical rule).
    template <bool is_max, class Use>
    void for_labels(Use use) {
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = i + 1; j <= n_; ++j) {
                const std::size_t row = scores_.row(i, j) * rules_.n_labels;
                for (const std::int32_t a : chart_.members(i, j)) {
                    const double from = above<is_max>(i, j, a);
                    if (j > i + 1)
                        use(row + static_cast<std::size_t>(rules_.label[static_cast<std::size_t>(a)]),
                            from + chart_.at(i, j, a));
                    else
                        list_ways(i, j, a, [&](const Way& way) {
                            use(row + static_cast<std::size_t>(rules_.terminal_label[way.rule]), from + way.score);
                        });
                }
            }
    }

    // use(shared part, probability, logarithm of that given the symbol) for every way to make a symbol of a span.
    template <class Use>
    void for_ways(Use use) {
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = i + 1; j <= n_; ++j) {
                if (j > i + 1) scores_.labels_of(i, j, labels_.data());
                for (const std::int32_t a : chart_.members(i, j)) {
                    const double here = j > i + 1 ? label_score(a) : 0.0, in = chart_.at(i, j, a) - here;
                    const double outside = above<false>(i, j, a) + here - inside_;
                    if (outside + in < kUnlikely) continue;
                    list_ways(i, j, a, [&](const Way& way) {
                        const std::size_t part = j > i + 1 ? way.rule : structure_.lexical_part(way.rule);
                        use(part, std::exp(outside + way.score), way.score - in);
                    });
                }
            }
    }

    std::size_t draw_way(std::span<const Way> ways, double uniform) {
        const double highest = ways[first_best(ways)].score;
        shares_.resize(ways.size());
        for (std::size_t at = 0; at < ways.size(); ++at) shares_[at] = std::exp(ways[at].score - highest);
        return draw_index(shares_, uniform);
    }

    // From the top, with choose(ways) among those of each symbol.
    template <class Choose>
    void walk(std::int32_t* labels, Choose choose) {
        std::fill_n(labels, n_ * (n_ + 1) / 2, 0);
        if (n_ == 0) return;
        ways_.clear();
        for (std::size_t r = 0; r < rules_.roots.size(); ++r)
            if (root(r) > -kInfinity) ways_.push_back({r, 0, root(r)});
        stack_.assign(1, {0, n_, rules_.roots[ways_[choose(std::span<const Way>(ways_))].rule]});
        while (!stack_.empty()) {
            const Node node = stack_.back();
            stack_.pop_back();
            ways_.clear();
            list_ways(node.first, node.last, node.symbol, [&](const Way& way) { ways_.push_back(way); });
            const Way way = ways_[choose(std::span<const Way>(ways_))];
            write(node.first, node.last, node.symbol, way, labels);
            if (node.last == node.first + 1) continue;
            stack_.push_back({way.split, node.last, rules_.right[way.rule]});
            stack_.push_back({node.first, way.split, rules_.left[way.rule]});
        }
    }

    static constexpr double kUnlikely = -230.0;  // logarithm of a probability that adds nothing
    struct Node {
        std::size_t first, last;
        std::int32_t symbol;
    };
    const GrammarStructure& structure_;
    const GrammarRules& rules_;
    const GrammarIndex& index_;
    const GrammarScores& scores_;
    GrammarChart& chart_;
    std::size_t n_ = 0;
    double inside_ = 0.0;
    std::vector<double> values_, labels_, shares_;
    std::vector<std::int32_t> touched_;  // [symbols + 1]: n_touched_ of them, and one that is written in vain
    std::size_t n_touched_ = 0;
    std::vector<SplitPair> pairs_;
    std::vector<Way> ways_;
    std::vector<Node> stack_;
};

}  // namespace dualfield
