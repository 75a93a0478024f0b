// The weights that belong to a point of the dual of an elastic net,
//
//   R(w) = ridge / 2 |w|^2 + lasso |w|_1,     ridge = 1 - rho, lasso = rho.
//
// v = sum_i c_i A_i' (u_i - mu_i) is what the point gives, and w = R*'(v) is v shrunk. Where the ridge is small beside
// the losses, w jumps with v, and ascent on single examples crawls. A proximal term helps (Rockafellar 1976): the
// ascent minimises R_a(w) = R(w) + sigma / 2 |w - a|^2 for a centre a, which follows w now and then and goes on a
// little on its way (Gueler 1992; Lin, Mairal and Harchaoui 2015). With u = v + sigma a
//
//   w = shrunk(u) / (ridge + sigma),     R_a*(v) = (ridge + sigma) / 2 |w|^2 - sigma / 2 |a|^2,
//
// so a move changes u as it would change v. The bound is that of R itself, whatever the centre.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "dualfield/core/memory.hpp"
#include "dualfield/scores/score_map.hpp"

namespace dualfield {

class DualWeights {
  public:
    DualWeights(std::size_t size, double l1_ratio, double sigma)
        : size_(size),
          lasso_(l1_ratio),
          ridge_(1.0 - l1_ratio),
          sigma_(sigma),
          w_(l1_ratio > 0.0 || sigma > 0.0 ? padded(size_) + size_ : size_, 0.0),
          centre_(sigma > 0.0 ? size_ : 0, 0.0),
          last_(centre_),
          shrinkage_{static_cast<std::ptrdiff_t>(w_.size() - size_), lasso_, ridge_ + sigma_} {}

    const double* data() const { return w_.data(); }
    std::vector<double> copy() const { return {w_.begin(), w_.begin() + static_cast<std::ptrdiff_t>(size_)}; }
    bool is_proximal() const { return sigma_ > 0.0; }

    // Weights to begin with; what belongs to them in the dual is not known.
    void begin(const double* w) {
        std::copy_n(w, size_, w_.data());
        if (is_proximal()) last_.assign(w, w + size_);
        centre_ = last_;
    }
    // v = 0, with the centre of others.
    void begin(const DualWeights& others) {
        centre_ = others.centre_;
        clear();
    }

    // v += scale * A_i' sums, and w follows; returns how much R_a* grows.
    double move(const ScoreMap& map, std::size_t i, const PartSums& sums, double scale, double* scratch) {
        return map.move(i, sums, scale, w_.data(), scratch, w_.size() > size_ ? &shrinkage_ : nullptr);
    }
    // v = 0.
    void clear() {
        std::fill(w_.begin(), w_.end(), 0.0);
        if (!is_proximal()) return;
        for (std::size_t j = 0; j < size_; ++j) u(j) = sigma_ * centre_[j];
        shrink();
    }
    // Moves the centre to w and on the way that it was going; w moves as well, v stays. Where the way turns, the pace
    // begins anew (O'Donoghue and Candes 2015).
    void follow() {
        double turned = 0.0;
        for (std::size_t j = 0; j < size_; ++j) turned += (centre_[j] - w_[j]) * (w_[j] - last_[j]);
        if (turned > 0.0) pace_ = 1.0;
        const double next = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * pace_ * pace_));
        const double on = (pace_ - 1.0) / next;
        pace_ = next;
        for (std::size_t j = 0; j < size_; ++j) {
            const double centre = w_[j] + on * (w_[j] - last_[j]);
            u(j) += sigma_ * (centre - centre_[j]);
            centre_[j] = centre;
            last_[j] = w_[j];
        }
        shrink();
    }

    // R_a*(v).
    double conjugate() const {
        double square = 0.0, centre = 0.0;
        for (std::size_t j = 0; j < size_; ++j) square += w_[j] * w_[j];
        for (const double a : centre_) centre += a * a;
        return 0.5 * (ridge_ + sigma_) * square - 0.5 * sigma_ * centre;
    }
    // R(w).
    double penalty() const {
        double square = 0.0, sum = 0.0;
        for (std::size_t j = 0; j < size_; ++j) square += w_[j] * w_[j];
        if (lasso_ > 0.0)
            for (std::size_t j = 0; j < size_; ++j) sum += std::abs(w_[j]);
        return 0.5 * ridge_ * square + lasso_ * sum;
    }
    // sigma / 2 |w - a|^2.
    double proximity() const {
        double square = 0.0;
        for (std::size_t j = 0; j < centre_.size(); ++j) square += (w_[j] - centre_[j]) * (w_[j] - centre_[j]);
        return 0.5 * sigma_ * square;
    }

    // The largest s E - R*(s v) for s in [0, 1], where E is what the examples give: a step from the truth towards the
    // point has at least this value, and no w has a smaller objective.
    double bound(double gain) const {
        std::vector<double> sizes;
        for (std::size_t j = 0; j < size_; ++j) {
            const double v = std::abs(u(j) - (centre_.empty() ? 0.0 : sigma_ * centre_[j]));
            if (v > lasso_) sizes.push_back(v);
        }
        if (sizes.empty()) return gain;
        if (ridge_ == 0.0) return gain * std::min(1.0, lasso_ / *std::max_element(sizes.begin(), sizes.end()));
        double share = 1.0, best = 0.0;
        // The slope, E - sum |v| max(s |v| - lasso, 0) / ridge, falls with s, ever faster: Newton's steps from the
        // right approach its zero from there.
        for (int step = 0; step < kMostSteps; ++step) {
            double square = 0.0, slope = gain, bend = 0.0;
            for (const double v : sizes) {
                const double over = share * v - lasso_;
                if (over <= 0.0) continue;
                square += over * over;
                slope -= v * over / ridge_;
                bend += v * v / ridge_;
            }
            best = std::max(best, share * gain - 0.5 * square / ridge_);
            if (slope >= 0.0 || !(share + slope / bend < share)) break;
            share = std::max(share + slope / bend, 0.0);
        }
        return best;
    }

    template <class Archive>
    void describe(Archive& archive) {
        archive("w", w_);
        if (!is_proximal()) return;
        archive("centre", centre_);
        archive("last", last_);
        archive.at_least("pace", pace_, 1.0);
    }

  private:
    static constexpr int kMostSteps = 50;

    double& u(std::size_t j) { return w_[w_.size() - size_ + j]; }
    double u(std::size_t j) const { return w_[w_.size() - size_ + j]; }
    void shrink() {
        const double inverse = 1.0 / (ridge_ + sigma_);
        for (std::size_t j = 0; j < size_; ++j) w_[j] = inverse * (u(j) - std::clamp(u(j), -lasso_, lasso_));
    }

    std::size_t size_;
    double lasso_, ridge_, sigma_;
    Aligned<double> w_;           // [size], then u where it is another vector
    std::vector<double> centre_;  // [size], or nothing
    std::vector<double> last_;    // [size], or nothing: w when the centre moved last
    double pace_ = 1.0;
    Shrinkage shrinkage_;
};

}  // namespace dualfield
