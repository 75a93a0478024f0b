// Changes of the marginals of labelled bracketings, which are drawn from the whole sentence down to its words.
#include <memory>
#include <vector>

#include "derivation_slope.hpp"
#include "dualfield/structures/parse_trees/spans.hpp"
#include "dualfield/structures/slope.hpp"
#include "spans_pass.hpp"

namespace dualfield {

class SpansStructure::OneSlope final : public Slope {
  public:
    explicit OneSlope(const SpansStructure& structure)
        : structure_(structure), n_labels_(structure.n_labels_), pass_(structure, structure.rooted_) {}

    Status begin(std::size_t example, const ScoreView& scores) override {
        pass_.begin(example, example, scores);
        pass_.up_sum();
        if (pass_.status() != Status::ok) return pass_.status();
        n_rows_ = structure_.length(example);
        n_ = n_words_of(n_rows_);
        read_labels();
        list_ways();
        slope_.begin(table_);
        masses_.assign(n_rows_, 0.0);
        slope_.add_masses(table_, masses_.data());
        return Status::ok;
    }

    double derive(const ScoreView& direction, const PartSums& change) override {
        const auto shares = [&](std::size_t row) { return labels_.data() + row * n_labels_; };
        const auto is_needed = [&](std::size_t row) { return pass_.chart().is_required(row); };
        rows_.read(n_rows_, n_labels_, direction.own[0], direction.inverse_temperature, shares, is_needed);
        changes_.assign(n_rows_, 0.0);
        const double mean = slope_.derive(table_, rows_.means(), changes_.data());
        rows_.spread(n_labels_, masses_.data(), changes_.data(), shares, is_needed, change.own[0]);
        return rows_.base() + mean;
    }

  private:
    enum Kind : std::size_t { kSequence, kOne, kTwo, kKinds };

    void read_labels() {
        labels_.assign(n_rows_ * n_labels_, 0.0);
        for (std::size_t row = 0; row < n_rows_; ++row) {
            const double sum = pass_.chart().label_sum(row);
            for (std::size_t k = 1; sum > 0.0 && k < n_labels_; ++k)
                labels_[row * n_labels_ + k] = pass_.chart().exponentials(row)[k] / sum;
        }
    }
    // The wider spans first.
    std::int32_t item(Kind kind, std::size_t i, std::size_t j) const {
        const std::size_t width = j - i, before = n_span_rows(n_ - width);
        return static_cast<std::int32_t>((before + i) * kKinds + kind);
    }
    void list_ways() {
        SpanChart& chart = pass_.chart();
        table_.begin();
        splits_.resize(chart.stride());
        for (std::size_t width = n_; width > 0; --width)
            for (std::size_t i = 0; i + width <= n_; ++i) {
                const std::size_t j = i + width, row = chart.row(i, j);
                const auto part = static_cast<std::int32_t>(row);
                const bool is_empty = chart.is_zero(chart.seq(i, j)), is_bracket = !chart.is_zero(chart.one(i, j));
                const double share = is_empty ? 0.0 : chart.share(chart.one(i, j), chart.seq(i, j));
                // A sequence of parts is one of them, or more.
                if (width == 1 && !is_empty) table_.add({1.0, item(kOne, i, j), -1, -1, -1});
                if (width > 1) {
                    table_.add({share, item(kOne, i, j), -1, -1, -1});
                    if (!is_empty && !chart.is_required(row))
                        table_.add({chart.share(chart.two(i, j), chart.seq(i, j)), item(kTwo, i, j), -1, -1, -1});
                }
                table_.close();
                // One part is a bracket with more inside, or a word with one or without.
                if (width == 1 && is_bracket) {
                    table_.add({chart.bracket_share(row), -1, -1, part, -1});
                    table_.add({1.0 - chart.bracket_share(row), -1, -1, -1, -1});
                }
                if (width > 1 && is_bracket) table_.add({1.0, item(kTwo, i, j), -1, part, -1});
                table_.close();
                if (width > 1 && !chart.is_zero(chart.two(i, j))) {
                    pass_.fill_splits(i, j, splits_.data());
                    for (std::size_t k = i + 1; k < j; ++k)
                        table_.add({splits_[k], item(kOne, i, k), item(kSequence, k, j), -1, -1});
                }
                table_.close();
            }
    }

    const SpansStructure& structure_;
    std::size_t n_labels_, n_rows_ = 0, n_ = 0;
    SpansPass pass_;
    DerivationTable table_;
    DerivationSlope slope_;
    CandidateRows rows_;
    std::vector<double> labels_;  // [rows][K]: p(label | bracket)
    std::vector<double> masses_;  // [rows]: p(bracket)
    std::vector<double> changes_, splits_;
};

std::unique_ptr<Slope> SpansStructure::slope() const {
    return std::make_unique<OneSlope>(*this);
}

}  // namespace dualfield
