// Changes of the probabilities of derivations: trees that are drawn from the top down, an item at a time. An item, such
// as a symbol of a span, is made in one of several ways, each of which leaves at most two items to be made.
//
//   E(item)   = sum over ways p(way | item) (v(way) + E(first) + E(second))         what is expected of a direction,
//   d p(way)  = p(way | item) (d p(item) + p(item) (v(way) + E(first) + E(second) - E(item)))
//
// All numbers are probabilities times entries of the direction: nothing overflows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dualfield {

struct DerivationWay {
    double share;                // p(way | item)
    std::int32_t first, second;  // items that follow in the order; -1: none
    std::int32_t part, label;    // what it adds to the parts of the derivation, by their numbers; -1: nothing
};

// Source has size(), the number of items, the first of which is the root, and ways(item, use): items come before those
// that they are made of.
class DerivationSlope {
  public:
    // The probabilities of all items.
    template <class Source>
    void begin(const Source& source) {
        mass_.assign(source.size(), 0.0);
        if (!mass_.empty()) mass_[0] = 1.0;
        for (std::size_t item = 0; item < mass_.size(); ++item)
            if (mass_[item] > 0.0)
                source.ways(item, [&](const DerivationWay& way) {
                    if (way.first >= 0) mass_[at(way.first)] += way.share * mass_[item];
                    if (way.second >= 0) mass_[at(way.second)] += way.share * mass_[item];
                });
    }
    // Adds to masses[part] the probabilities of parts.
    template <class Source>
    void add_masses(const Source& source, double* masses) const {
        for (std::size_t item = 0; item < mass_.size(); ++item)
            source.ways(item, [&](const DerivationWay& way) {
                if (way.part >= 0) masses[way.part] += way.share * mass_[item];
            });
    }

    // Adds to changes[part] how the probabilities of parts change along the direction values[part]; returns what is
    // expected of it.
    template <class Source>
    double derive(const Source& source, const double* values, double* changes) {
        const std::size_t n = mass_.size();
        if (n == 0) return 0.0;
        expected_.assign(n, 0.0);
        const auto ahead = [&](const DerivationWay& way) {
            double sum = 0.0;
            if (way.part >= 0) sum += values[way.part];
            if (way.label >= 0) sum += values[way.label];
            if (way.first >= 0) sum += expected_[at(way.first)];
            if (way.second >= 0) sum += expected_[at(way.second)];
            return sum;
        };
        for (std::size_t item = n; item-- > 0;)
            if (mass_[item] > 0.0) {
                double sum = 0.0;
                source.ways(item, [&](const DerivationWay& way) { sum += way.share * ahead(way); });
                expected_[item] = sum;
            }
        moved_.assign(n, 0.0);
        for (std::size_t item = 0; item < n; ++item)
            if (mass_[item] > 0.0)
                source.ways(item, [&](const DerivationWay& way) {
                    const double change = way.share * (moved_[item] + mass_[item] * (ahead(way) - expected_[item]));
                    if (way.part >= 0) changes[way.part] += change;
                    if (way.label >= 0) changes[way.label] += change;
                    if (way.first >= 0) moved_[at(way.first)] += change;
                    if (way.second >= 0) moved_[at(way.second)] += change;
                });
        return expected_[0];
    }

  private:
    static std::size_t at(std::int32_t item) { return static_cast<std::size_t>(item); }

    std::vector<double> mass_, expected_, moved_;
};

// Ways that are kept: for trees without rules, which have few of them. Items are opened in order.
class DerivationTable {
  public:
    void begin() {
        begins_.assign(1, 0);
        ways_.clear();
    }
    void add(const DerivationWay& way) {
        if (way.share > 0.0) ways_.push_back(way);
    }
    void close() { begins_.push_back(ways_.size()); }

    std::size_t size() const { return begins_.size() - 1; }
    template <class Use>
    void ways(std::size_t item, Use use) const {
        for (std::size_t w = begins_[item]; w < begins_[item + 1]; ++w) use(ways_[w]);
    }

  private:
    std::vector<std::size_t> begins_;
    std::vector<DerivationWay> ways_;
};

// Rows of candidates with labels that are drawn on their own once a candidate is in the tree; label 0 says that it is
// not, and counts for nothing where it is forbidden.
class CandidateRows {
  public:
    // shares(row) [K]: p(label | in the tree), that of label 0 is not read; is_needed(row): label 0 is forbidden.
    template <class Shares, class IsNeeded>
    void read(std::size_t n_rows, std::size_t n_labels, const double* own, double factor, Shares shares,
              IsNeeded is_needed) {
        base_ = 0.0;
        means_.assign(n_rows, 0.0);
        relative_.resize(n_rows * n_labels);
        for (std::size_t row = 0; row < n_rows; ++row) {
            const double* in = own + row * n_labels;
            const double none = is_needed(row) ? 0.0 : factor * in[0];
            base_ += none;
            const double* share = shares(row);
            for (std::size_t k = 1; k < n_labels; ++k) {
                relative_[row * n_labels + k] = factor * in[k] - none;
                means_[row] += share[k] * relative_[row * n_labels + k];
            }
        }
    }
    double base() const { return base_; }
    const double* means() const { return means_.data(); }  // [rows]

    // From the probabilities that candidates are in the tree, and their changes, to those of labels.
    template <class Shares, class IsNeeded>
    void spread(std::size_t n_labels, const double* masses, const double* changes, Shares shares, IsNeeded is_needed,
                double* out) const {
        for (std::size_t row = 0; row < means_.size(); ++row) {
            double* own = out + row * n_labels;
            const double* share = shares(row);
            own[0] = is_needed(row) ? 0.0 : -changes[row];
            for (std::size_t k = 1; k < n_labels; ++k)
                own[k] = share[k] * (changes[row] + masses[row] * (relative_[row * n_labels + k] - means_[row]));
        }
    }

  private:
    double base_ = 0.0;
    std::vector<double> means_, relative_;
};

}  // namespace dualfield
