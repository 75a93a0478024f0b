// Changes of the marginals of semi-Markov sequences. They are drawn from left to right: how long a segment is, given
// its first node and its kind, then the kind of the next one.
#include <cmath>
#include <vector>

#include "dualfield/structures/slope.hpp"
#include "semi_markov_pass.hpp"

namespace dualfield {

class SemiMarkovStructure::OneSlope final : public Slope {
  public:
    explicit OneSlope(const SemiMarkovStructure& structure)
        : structure_(structure), n_(structure.options_.n_kinds), pass_(structure), direction_(structure) {}

    Status begin(std::size_t example, const ScoreView& scores) override {
        example_ = example;
        pass_.forget();  // other scores may be in the same place
        pass_.begin(example, example, scores);
        pass_.up_sum();
        if (pass_.status() != Status::ok) return pass_.status();
        pass_.down_sum();
        const std::size_t length = pass_.length();
        reach_ = length > 0 ? pass_.reach(0) : 0;
        lengths_.assign(length * reach_ * n_, 0.0);
        kinds_.assign(length * n_ * n_, 0.0);
        first_.assign(n_, 0.0);
        for (std::size_t s = 0; s < length; ++s)
            for (std::size_t j = 0; j < n_; ++j) {
                if (!(pass_.begun(s)[j] > -kInfinity)) continue;
                for (std::size_t l = 1; l <= pass_.reach(s); ++l)
                    lengths_[place(s, l) + j] =
                        share(pass_.segment(s, l)[j] + pass_.after(s + l)[j], pass_.begun(s)[j]);
                if (s == 0) first_[j] = share(pass_.begun(0)[j], pass_.total());
                for (std::size_t i = 0; s > 0 && i < n_; ++i)
                    kinds_[(s * n_ + i) * n_ + j] =
                        share(pass_.transition(i)[j] + pass_.begun(s)[j], pass_.after(s)[i]);
            }
        return Status::ok;
    }

    double derive(const ScoreView& direction, const PartSums& change) override {
        const std::size_t length = pass_.length();
        direction_.forget();
        direction_.begin(example_, example_, direction);
        expect();
        double total = 0.0;
        for (std::size_t j = 0; j < n_; ++j) total += length > 0 ? first_[j] * begun_[j] : 0.0;
        std::vector<double> pairs(n_ * n_, 0.0);
        move(total, pairs);
        const std::size_t width = padded(n_);
        pass_.spread_segments(change.own[0], structure_.options_.with_segments ? change.own[1] : nullptr, change.shared,
                              [&](std::size_t s, std::size_t l, double* p) {
                                  std::fill_n(p, width, 0.0);
                                  std::copy_n(changes_.data() + place(s, l), n_, p);
                              });
        if (change.shared)
            for (std::size_t c = 0; c < pairs.size(); ++c) change.shared[c] += pairs[c];
        return total;
    }

  private:
    static double share(double part, double whole) {
        return part > -kInfinity && whole > -kInfinity ? std::exp(part - whole) : 0.0;
    }
    std::size_t place(std::size_t s, std::size_t l) const { return (s * reach_ + l - 1) * n_; }

    // What is expected of the direction from a segment on, and behind one.
    void expect() {
        const std::size_t length = pass_.length();
        begun_.assign((length + 1) * n_, 0.0);
        after_.assign((length + 1) * n_, 0.0);
        for (std::size_t s = length; s-- > 0;) {
            for (std::size_t l = 1; l <= pass_.reach(s); ++l)
                for (std::size_t j = 0; j < n_; ++j)
                    if (const double p = lengths_[place(s, l) + j]; p > 0.0)
                        begun_[s * n_ + j] += p * (direction_.segment(s, l)[j] + after_[(s + l) * n_ + j]);
            for (std::size_t i = 0; i < n_; ++i)
                for (std::size_t j = 0; j < n_; ++j)
                    if (const double p = kinds_[(s * n_ + i) * n_ + j]; p > 0.0)
                        after_[s * n_ + i] += p * (direction_.transition(i)[j] + begun_[s * n_ + j]);
        }
    }

    // Probabilities and their changes from left to right: segments that begin at a node, segments, pairs of kinds.
    void move(double total, std::vector<double>& pairs) {
        const std::size_t length = pass_.length();
        std::vector<double> mass((length + 1) * n_, 0.0), moved(mass), ended(mass), ended_moved(mass);
        changes_.assign(lengths_.size(), 0.0);
        for (std::size_t s = 0; s < length; ++s) {
            for (std::size_t j = 0; j < n_; ++j) {
                if (s == 0) {
                    mass[j] = first_[j];
                    moved[j] = first_[j] * (begun_[j] - total);
                }
                for (std::size_t i = 0; s > 0 && i < n_; ++i) {
                    const double p = kinds_[(s * n_ + i) * n_ + j];
                    if (!(p > 0.0)) continue;
                    const double above = direction_.transition(i)[j] + begun_[s * n_ + j] - after_[s * n_ + i];
                    const double change = p * (ended_moved[s * n_ + i] + ended[s * n_ + i] * above);
                    mass[s * n_ + j] += p * ended[s * n_ + i];
                    moved[s * n_ + j] += change;
                    pairs[i * n_ + j] += change;
                }
            }
            for (std::size_t l = 1; l <= pass_.reach(s); ++l)
                for (std::size_t j = 0; j < n_; ++j) {
                    const double p = lengths_[place(s, l) + j];
                    if (!(p > 0.0)) continue;
                    const double above = direction_.segment(s, l)[j] + after_[(s + l) * n_ + j] - begun_[s * n_ + j];
                    const double change = p * (moved[s * n_ + j] + mass[s * n_ + j] * above);
                    changes_[place(s, l) + j] = change;
                    ended[(s + l) * n_ + j] += p * mass[s * n_ + j];
                    ended_moved[(s + l) * n_ + j] += change;
                }
        }
    }

    const SemiMarkovStructure& structure_;
    std::size_t n_, example_ = 0, reach_ = 0;
    Pass pass_, direction_;
    std::vector<double> lengths_;  // p(length | first node, kind), [s][l][j]
    std::vector<double> kinds_;    // p(kind | kind before), [s][i][j]
    std::vector<double> first_;    // [j]
    std::vector<double> begun_, after_, changes_;
};

std::unique_ptr<Slope> SemiMarkovStructure::slope() const {
    return std::make_unique<OneSlope>(*this);
}

}  // namespace dualfield
