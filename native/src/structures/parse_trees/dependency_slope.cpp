// Changes of the marginals of projective dependency trees, which are drawn from the root down to words.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "dependency_pass.hpp"
#include "derivation_slope.hpp"
#include "dualfield/structures/slope.hpp"

namespace dualfield {

class DependencyStructure::OneSlope final : public Slope {
  public:
    explicit OneSlope(const DependencyStructure& structure)
        : structure_(structure), n_labels_(structure.n_labels_), pass_(structure) {}

    Status begin(std::size_t example, const ScoreView& scores) override {
        pass_.begin(example, example, scores);
        pass_.up_sum();
        if (pass_.status() != Status::ok) return pass_.status();
        n_ = pass_.n_words();
        table_.begin();
        labels_.assign(n_ * n_ * n_labels_, 0.0);
        masses_.assign(n_ * n_, 0.0);
        needed_.resize(n_ * n_);
        if (n_ > 0) list_ways();
        for (std::size_t row = 0; row < n_ * n_; ++row) {
            needed_[row] = !(scores.own[0][row * n_labels_] > -kInfinity);
            for (std::size_t k = 1; k < n_labels_; ++k) labels_[row * n_labels_ + k] = pass_.label_share(row, k);
        }
        slope_.begin(table_);
        slope_.add_masses(table_, masses_.data());
        return Status::ok;
    }

    double derive(const ScoreView& direction, const PartSums& change) override {
        const auto shares = [&](std::size_t row) { return labels_.data() + row * n_labels_; };
        const auto is_needed = [&](std::size_t row) { return needed_[row] != 0; };
        rows_.read(n_ * n_, n_labels_, direction.own[0], direction.inverse_temperature, shares, is_needed);
        changes_.assign(n_ * n_, 0.0);
        const double mean = slope_.derive(table_, rows_.means(), changes_.data());
        rows_.spread(n_labels_, masses_.data(), changes_.data(), shares, is_needed, change.own[0]);
        return rows_.base() + mean;
    }

  private:
    enum Kind : std::size_t { kRight, kLeft, kBoth, kKinds };  // as in arc_task.hpp

    // The root of all, then the wider spans first; -1 for spans of one word, which have nothing below them.
    std::int32_t item(Kind kind, std::size_t i, std::size_t j) const {
        if (i == j) return -1;
        return static_cast<std::int32_t>(1 + ((n_ - (j - i)) * (n_ + 1) + i) * kKinds + kind);
    }
    std::int32_t arc(std::size_t head, std::size_t child) const {
        return static_cast<std::int32_t>(row(n_, head, child - 1));
    }

    void list_ways() {
        if (pass_.is_single()) {
            gather(1, n_, [&](std::size_t r) { return pass_.root_value(r); });
            add(1, n_, [&](std::size_t r) { return Below{item(kLeft, 1, r), item(kRight, r, n_), arc(0, r)}; });
        } else {
            table_.add({1.0, item(kRight, 0, n_), -1, -1, -1});
        }
        table_.close();
        for (std::size_t width = n_; width > 0; --width)
            for (std::size_t i = 0; i <= n_; ++i) {
                const std::size_t j = i + width;
                if (j > n_ || (i == 0 && pass_.is_single())) {  // there is no such span
                    for (std::size_t kind = 0; kind < kKinds; ++kind) table_.close();
                    continue;
                }
                gather(i + 1, j, [&](std::size_t k) {
                    return pass_.times(pass_.up(ArcTask::kToEnd, i, k), pass_.up(ArcTask::kRight, k, j));
                });
                add(i + 1, j, [&](std::size_t k) { return Below{item(kBoth, i, k), item(kRight, k, j), arc(i, k)}; });
                table_.close();
                if (i > 0) {  // the root has no head
                    gather(i, j - 1, [&](std::size_t k) {
                        return pass_.times(pass_.up(ArcTask::kLeft, i, k), pass_.up(ArcTask::kToBeginByEnd, j, k));
                    });
                    add(i, j - 1,
                        [&](std::size_t k) { return Below{item(kLeft, i, k), item(kBoth, k, j), arc(j, k)}; });
                }
                table_.close();
                gather(i, j - 1, [&](std::size_t k) {
                    return pass_.times(pass_.up(ArcTask::kRight, i, k), pass_.up(ArcTask::kLeft, k + 1, j));
                });
                add(i, j - 1, [&](std::size_t k) { return Below{item(kRight, i, k), item(kLeft, k + 1, j), -1}; });
                table_.close();
            }
    }
    struct Below {
        std::int32_t first, second, part;
    };
    // The shares of ways from their values, products or logarithms.
    template <class Value>
    void gather(std::size_t first, std::size_t last, Value value) {
        shares_.clear();
        for (std::size_t k = first; k <= last; ++k) shares_.push_back(value(k));
        if (!pass_.is_product()) {
            const double highest = *std::ranges::max_element(shares_);
            for (double& share : shares_) share = highest > -kInfinity ? std::exp(share - highest) : 0.0;
        }
        double sum = 0.0;
        for (const double share : shares_) sum += share;
        for (double& share : shares_) share = sum > 0.0 ? share / sum : 0.0;
    }
    template <class Way>
    void add(std::size_t first, std::size_t last, Way way) {
        for (std::size_t k = first; k <= last; ++k) {
            const Below below = way(k);
            table_.add({shares_[k - first], below.first, below.second, below.part, -1});
        }
    }

    const DependencyStructure& structure_;
    std::size_t n_labels_, n_ = 0;
    Pass pass_;
    DerivationTable table_;
    DerivationSlope slope_;
    CandidateRows rows_;
    std::vector<double> labels_;  // [rows][K]: p(label | arc)
    std::vector<double> masses_;  // [rows]: p(arc)
    std::vector<char> needed_;
    std::vector<double> changes_, shares_;
};

std::unique_ptr<Slope> DependencyStructure::slope() const {
    return std::make_unique<OneSlope>(*this);
}

}  // namespace dualfield
