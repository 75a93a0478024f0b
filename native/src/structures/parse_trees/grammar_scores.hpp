// The scores of one sentence, as passes of a grammar need them.
#pragma once

#include <algorithm>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/layout.hpp"
#include "dualfield/structures/parse_trees/grammar.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

// Labels score relative to label 0, so that a derivation needs to know nothing of spans that it does not have. Where
// label 0 is forbidden there must be a bracket, and spans that cross it cannot be: a binary tree none of whose spans
// crosses a given one has it.
class GrammarScores {
  public:
    explicit GrammarScores(const GrammarStructure& structure) : structure_(structure) {}

    void begin(std::size_t example, std::size_t from, const ScoreView& view) {
        n_ = structure_.n_words(example);
        terminals_ = structure_.terminals(example);
        own_ = structure_.view_of(example, from, view).own[0];
        if (view.shared != shared_ || view.inverse_temperature != factor_) {
            shared_ = view.shared;
            factor_ = view.inverse_temperature;
            read_shared();
        }
        const std::size_t n_rows = n_ * (n_ + 1) / 2, n_labels = structure_.n_labels();
        const NumberRange range = routines().range(own_, n_rows * n_labels, factor_);
        is_bad_ = shared_is_bad_ || range.bad_number;
        is_plain_ = !range.has_minus_infinity && range.lowest == 0.0 && range.highest == 0.0;
        base_ = 0.0;
        required_.clear();
        if (is_plain_ || n_rows == 0) return;
        for (std::size_t i = 0, row = 0; i < n_; ++i)
            for (std::size_t j = i + 1; j <= n_; ++j, ++row) {
                const double none = factor_ * own_[row * n_labels];
                if (none > -kInfinity)
                    base_ += none;
                else
                    required_.push_back({i, j});
            }
        if (!required_.empty()) cross_out();
    }
    // Makes weights(), which maxima do not need.
    void weigh() {
        if (has_weights_) return;
        const std::size_t width = padded(structure_.index().rule.size()) + kLanes;
        routines().exponentials(binary_.data(), highest_, width, weights_.require(width));
        has_weights_ = true;
    }
    // Reads shared scores anew the next time.
    void forget() { factor_ = 0.0; }

    std::size_t n_words() const { return n_; }
    bool is_bad() const { return is_bad_; }
    double base() const { return base_; }  // of label 0 everywhere, but where it is forbidden
    // Whether label 0 is all that spans score, and may have.
    bool is_plain() const { return is_plain_; }
    bool may_be(std::size_t i, std::size_t j) const { return required_.empty() || !crossed_[i * (n_ + 1) + j]; }
    bool is_required(std::size_t i, std::size_t j) const {
        return !is_plain_ && !(own_[row(i, j) * structure_.n_labels()] > -kInfinity);
    }
    std::size_t row(std::size_t i, std::size_t j) const { return GrammarStructure::row_of(i, j, n_); }

    // out [K]: what labels of a span score, more than label 0.
    void labels_of(std::size_t i, std::size_t j, double* out) const {
        const std::size_t n_labels = structure_.n_labels();
        if (is_plain_) {
            std::fill_n(out, n_labels, 0.0);
            return;
        }
        const double* own = own_ + row(i, j) * n_labels;
        const double none = factor_ * own[0];
        const bool is_needed = !(none > -kInfinity);
        for (std::size_t k = 0; k < n_labels; ++k) out[k] = factor_ * own[k] - (is_needed ? 0.0 : none);
        out[0] = is_needed ? -kInfinity : 0.0;
    }
    // use(rule, score) for the lexical rules of a word.
    template <class Use>
    void for_lexical(std::size_t i, Use use) const {
        if (terminals_[i] < 0 || !may_be(i, i + 1)) return;
        const GrammarIndex& index = structure_.index();
        const auto t = static_cast<std::size_t>(terminals_[i]);
        const double* own = is_plain_ ? nullptr : own_ + row(i, i + 1) * structure_.n_labels();
        const double none = own ? factor_ * own[0] : 0.0;
        for (auto at = index.by_terminal[t]; at < index.by_terminal[t + 1]; ++at) {
            const auto rule = static_cast<std::size_t>(index.lexical[static_cast<std::size_t>(at)]);
            const auto label = static_cast<std::size_t>(structure_.rules().terminal_label[rule]);
            double score = lexical(rule);
            if (own && !(none > -kInfinity))
                score += label == 0 ? -kInfinity : factor_ * own[label];
            else if (own)
                score += factor_ * own[label] - none;
            use(rule, score);
        }
    }
    // In the order by pairs of the index.
    const double* binary() const { return binary_.data(); }
    double lexical(std::size_t rule) const { return rest_.data()[rule]; }
    double root(std::size_t root) const { return rest_.data()[structure_.rules().terminal.size() + root]; }
    // Of the binary rules that are not forbidden.
    double highest() const { return highest_; }
    double lowest() const { return lowest_; }
    // exp(binary - highest), in the same order, after weigh; kLanes zeros behind.
    const double* weights() const { return weights_.data(); }

  private:
    void read_shared() {
        const GrammarIndex& index = structure_.index();
        const std::size_t n_binary = index.rule.size(), n = structure_.parts().n_shared,
                          width = padded(n_binary) + kLanes;
        double *binary = binary_.require(width), *rest = rest_.require(std::max<std::size_t>(n - n_binary, 1));
        std::fill_n(binary + n_binary, width - n_binary, -kInfinity);
        has_weights_ = shared_is_bad_ = false;
        highest_ = lowest_ = 0.0;
        if (!shared_) {
            std::fill_n(binary, n_binary, 0.0);
            std::fill_n(rest, n - n_binary, 0.0);
            return;
        }
        const std::int32_t* rule = index.rule.data();
        for (std::size_t q = 0; q < n_binary; ++q) binary[q] = factor_ * shared_[rule[q]];
        for (std::size_t part = n_binary; part < n; ++part) rest[part - n_binary] = factor_ * shared_[part];
        const NumberRange range = routines().range(shared_, n_binary, factor_);
        shared_is_bad_ = range.bad_number || routines().range(shared_ + n_binary, n - n_binary, factor_).bad_number;
        if (range.highest > -kInfinity) {
            highest_ = range.highest;
            lowest_ = range.lowest;
        }
    }

    void cross_out() {
        crossed_.assign((n_ + 1) * (n_ + 1), 0);
        for (const auto& [first, last] : required_)
            for (std::size_t i = 0; i < n_; ++i)
                for (std::size_t j = i + 1; j <= n_; ++j)
                    if ((i < first && first < j && j < last) || (first < i && i < last && last < j))
                        crossed_[i * (n_ + 1) + j] = 1;
    }

    struct Span {
        std::size_t first, last;
    };
    const GrammarStructure& structure_;
    std::size_t n_ = 0;
    const std::int32_t* terminals_ = nullptr;
    const double *own_ = nullptr, *shared_ = nullptr;
    double factor_ = 0.0, base_ = 0.0, highest_ = 0.0, lowest_ = 0.0;
    bool is_bad_ = false, shared_is_bad_ = false, has_weights_ = false, is_plain_ = true;
    Buffer binary_, weights_, rest_;
    std::vector<Span> required_;
    std::vector<char> crossed_;
};

}  // namespace dualfield
