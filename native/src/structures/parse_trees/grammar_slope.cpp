// Changes of the marginals of the trees of a grammar, which are drawn by one rule after another from the root down.
#include <cmath>
#include <memory>
#include <vector>

#include "derivation_slope.hpp"
#include "dualfield/structures/slope.hpp"
#include "grammar_chart.hpp"
#include "grammar_logs.hpp"
#include "grammar_scores.hpp"

namespace dualfield {

// Ways are found anew in each pass: rules times splits of all spans are too many to be kept. Parts have numbers: shared
// ones first, then labels of rows.
class GrammarStructure::OneSlope final : public Slope {
  public:
    explicit OneSlope(const GrammarStructure& structure)
        : structure_(structure),
          rules_(structure.rules_),
          n_shared_(structure.parts_.n_shared),
          scores_(structure),
          logs_(structure, scores_, chart_) {}

    Status begin(std::size_t example, const ScoreView& scores) override {
        scores_.forget();  // other scores may be in the same place
        own_.assign(scores.own[0], scores.own[0] + structure_.length(example) * rules_.n_labels);
        ScoreView kept = scores;
        kept.own[0] = own_.data();
        scores_.begin(example, example, kept);
        if (scores_.is_bad()) return Status::bad_number;
        n_ = scores_.n_words();
        items_.clear();
        if (n_ > 0) {
            logs_.up<false>();
            if (!(logs_.total() < kInfinity)) return Status::bad_number;
            if (!(logs_.total() > -kInfinity)) return Status::impossible;
            list_items();
        }
        needed_.resize(n_ * (n_ + 1) / 2);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = i + 1; j <= n_; ++j) needed_[scores_.row(i, j)] = scores_.is_required(i, j);
        slope_.begin(*this);
        return Status::ok;
    }

    double derive(const ScoreView& direction, const PartSums& change) override {
        const std::size_t n_labels = rules_.n_labels, n_rows = n_ * (n_ + 1) / 2;
        const double factor = direction.inverse_temperature;
        values_.assign(n_shared_ + n_rows * n_labels, 0.0);
        changes_.assign(values_.size(), 0.0);
        for (std::size_t part = 0; direction.shared && part < n_shared_; ++part)
            values_[part] = factor * direction.shared[part];
        double base = 0.0;
        for (std::size_t row = 0; row < n_rows; ++row) {
            const double* own = direction.own[0] + row * n_labels;
            const double none = needed_[row] ? 0.0 : factor * own[0];
            base += none;
            for (std::size_t k = 1; k < n_labels; ++k) values_[label_part(row, k)] = factor * own[k] - none;
        }
        const double mean = slope_.derive(*this, values_.data(), changes_.data());
        std::copy_n(changes_.begin(), n_shared_, change.shared);
        for (std::size_t row = 0; row < n_rows; ++row) {
            double *out = change.own[0] + row * n_labels, sum = 0.0;
            for (std::size_t k = 1; k < n_labels; ++k) sum += out[k] = changes_[label_part(row, k)];
            out[0] = needed_[row] ? 0.0 : -sum;
        }
        return base + mean;
    }

    // What DerivationSlope asks for: the root, then symbols of spans, the wider ones first.
    std::size_t size() const { return items_.size(); }
    template <class Use>
    void ways(std::size_t item, Use use) const {
        if (item == 0) {
            for (std::size_t r = 0; r < rules_.roots.size(); ++r)
                if (const double log = logs_.root(r) - logs_.inside(); log > -kInfinity)
                    use(DerivationWay{std::exp(log), find(0, n_, rules_.roots[r]), -1,
                                      static_cast<std::int32_t>(structure_.root_part(r)), -1});
            return;
        }
        const auto [i, j, symbol, inside] = items_[item];
        const std::size_t row = scores_.row(i, j);
        logs_.list_ways(i, j, symbol, [&](const GrammarLogs::Way& way) {
            const double share = std::exp(way.score - inside);
            if (!(share > 0.0)) return;
            if (j == i + 1) {
                const auto label = static_cast<std::size_t>(rules_.terminal_label[way.rule]);
                use(DerivationWay{share, -1, -1, static_cast<std::int32_t>(structure_.lexical_part(way.rule)),
                                  number(row, label)});
            } else {
                const auto label = static_cast<std::size_t>(rules_.label[static_cast<std::size_t>(symbol)]);
                use(DerivationWay{share, find(i, way.split, rules_.left[way.rule]),
                                  find(way.split, j, rules_.right[way.rule]), static_cast<std::int32_t>(way.rule),
                                  number(row, label)});
            }
        });
    }

  private:
    struct Item {
        std::size_t first, last;
        std::int32_t symbol;
        double inside;  // without the score of the label
    };
    std::size_t label_part(std::size_t row, std::size_t label) const {
        return n_shared_ + row * rules_.n_labels + label;
    }
    std::int32_t number(std::size_t row, std::size_t label) const {
        return label == 0 ? -1 : static_cast<std::int32_t>(label_part(row, label));
    }
    std::int32_t find(std::size_t i, std::size_t j, std::int32_t symbol) const {
        return places_[scores_.row(i, j) * rules_.n_symbols + static_cast<std::size_t>(symbol)];
    }
    void list_items() {
        places_.assign(n_ * (n_ + 1) / 2 * rules_.n_symbols, -1);
        labels_.resize(rules_.n_labels);
        items_.push_back({0, n_, -1, 0.0});  // the root
        for (std::size_t width = n_; width > 0; --width)
            for (std::size_t i = 0; i + width <= n_; ++i) {
                const std::size_t j = i + width;
                scores_.labels_of(i, j, labels_.data());
                for (const std::int32_t symbol : chart_.members(i, j)) {
                    const auto a = static_cast<std::size_t>(symbol);
                    const double label = width > 1 ? labels_[static_cast<std::size_t>(rules_.label[a])] : 0.0;
                    const double inside = chart_.at(i, j, symbol);
                    if (!(inside > -kInfinity)) continue;
                    places_[scores_.row(i, j) * rules_.n_symbols + a] = static_cast<std::int32_t>(items_.size());
                    items_.push_back({i, j, symbol, inside - label});
                }
            }
    }

    const GrammarStructure& structure_;
    const GrammarRules& rules_;
    std::size_t n_shared_, n_ = 0;
    GrammarScores scores_;
    GrammarChart chart_;
    GrammarLogs logs_;
    DerivationSlope slope_;
    std::vector<Item> items_;
    std::vector<std::int32_t> places_;  // [rows][symbols]: the item; -1: none
    std::vector<char> needed_;          // [rows]
    std::vector<double> own_, labels_, values_, changes_;
};

std::unique_ptr<Slope> GrammarStructure::slope() const {
    return std::make_unique<OneSlope>(*this);
}

}  // namespace dualfield
