// Dual points over a table of outputs: a distribution over the outputs for each example.
//
// With one slot the best point of an example, all others fixed, is a projection onto the simplex: with curvature
// g = K[point][point] and the cost-augmented scores f of now,
//
//   alpha <- projection of alpha + f / (c g).
//
// With several slots mass goes from the worst output that has some to the best one, as far as the slope or the mass
// allows, a few times.
#include <algorithm>
#include <cmath>
#include <vector>

#include "dualfield/core/memory.hpp"
#include "dualfield/solvers/kernel/kernel_ascent.hpp"

namespace dualfield {
namespace {

constexpr int kMostSwaps = 20;
constexpr double kSolved = 0.05;  // swaps go on until this share of the gap is left

class TableBlocks final : public DualBlocks {
  public:
    explicit TableBlocks(const MarginTable& table)
        : table_(table),
          n_outputs_(table.outputs.size() / table.n_slots),
          alpha_(checked_product(table.truth.size(), n_outputs_), 0.0),
          augmented_(n_outputs_) {
        for (std::size_t i = 0; i < table.truth.size(); ++i) alpha_of(i)[truth(i)] = 1.0;
    }

    std::size_t n_examples() const override { return table_.truth.size(); }
    std::size_t width(std::size_t) const override { return table_.n_labels; }
    bool is_there(std::size_t) const override { return true; }
    std::span<const std::int32_t> members(std::size_t, std::size_t i) const override {
        return table_.members.subspan(i * table_.n_slots, table_.n_slots);
    }
    double weight(std::size_t i) const override { return table_.weights[i]; }
    bool wants_mean() const override { return true; }

    double visit(std::size_t i, double* scores, const double* gram, double* change) override {
        if (table_.n_slots == 1) return project(i, scores, gram[0], change);
        double gain = 0.0, first = 0.0;
        for (int swap = 0; swap < kMostSwaps; ++swap) {
            const double slope = augment(i, scores);
            if (swap == 0) first = slope;
            if (!(slope > kSolved * first)) break;
            const double gained = this->swap(i, scores, gram, change);
            if (!(gained > 0.0)) break;
            gain += gained;
        }
        return gain;
    }

    double gap(std::size_t i, const double* scores) override { return table_.weights[i] * augment(i, scores); }

    double loss(std::size_t i, const double* scores, const double*) override {
        augment(i, scores);
        return table_.weights[i] * (*std::max_element(augmented_.begin(), augmented_.end()) - augmented_[truth(i)]);
    }

    double settle(std::size_t i, double* out) override {
        double* alpha = alpha_of(i);
        double sum = 0.0, cost = 0.0;
        for (std::size_t o = 0; o < n_outputs_; ++o) sum += alpha[o];
        std::fill_n(out, table_.n_slots * table_.n_labels, 0.0);
        add(truth(i), table_.weights[i], out);
        for (std::size_t o = 0; o < n_outputs_; ++o) {
            if (alpha[o] == 0.0) continue;
            alpha[o] /= sum;
            cost += alpha[o] * this->cost(i, o);
            add(o, -table_.weights[i] * alpha[o], out);
        }
        return table_.weights[i] * cost;
    }

  private:
    std::size_t truth(std::size_t i) const { return static_cast<std::size_t>(table_.truth[i]); }
    double* alpha_of(std::size_t i) { return alpha_.data() + i * n_outputs_; }
    double cost(std::size_t i, std::size_t output) const {
        if (table_.cost) return table_.cost[truth(i) * n_outputs_ + output];
        return output == truth(i) ? 0.0 : 1.0;
    }
    std::size_t place(std::size_t output, std::size_t slot) const {
        return slot * table_.n_labels + static_cast<std::size_t>(table_.outputs[output * table_.n_slots + slot]);
    }
    void add(std::size_t output, double mass, double* out) const {
        for (std::size_t s = 0; s < table_.n_slots; ++s) out[place(output, s)] += mass;
    }

    // Scores of the outputs with their costs into augmented_; returns the maximum minus the mean under alpha.
    double augment(std::size_t i, const double* scores) {
        const double* alpha = alpha_of(i);
        if (table_.cost)
            std::copy_n(table_.cost + truth(i) * n_outputs_, n_outputs_, augmented_.begin());
        else
            std::fill(augmented_.begin(), augmented_.end(), 1.0);
        if (!table_.cost) augmented_[truth(i)] = 0.0;
        if (table_.n_slots == 1)
            for (std::size_t o = 0; o < n_outputs_; ++o) augmented_[o] += scores[table_.outputs[o]];
        else
            for (std::size_t o = 0; o < n_outputs_; ++o)
                for (std::size_t s = 0; s < table_.n_slots; ++s) augmented_[o] += scores[place(o, s)];
        double best = -kInfinity, mean = 0.0;
        for (std::size_t o = 0; o < n_outputs_; ++o) {
            best = std::max(best, augmented_[o]);
            mean += alpha[o] * augmented_[o];
        }
        return std::max(best - mean, 0.0);
    }

    double project(std::size_t i, double* scores, double curvature, double* change) {
        const double weight = table_.weights[i];
        double* alpha = alpha_of(i);
        if (!(augment(i, scores) > 0.0)) return 0.0;
        target_.resize(n_outputs_);
        // Only differences count: next to the largest score, steps of any length keep all digits of alpha.
        const double rate = std::min(1.0 / (weight * std::max(curvature, 0.0)), 1e300);
        const double top = *std::max_element(augmented_.begin(), augmented_.end());
        double best = -kInfinity;
        for (std::size_t o = 0; o < n_outputs_; ++o) {
            target_[o] = alpha[o] + rate * (augmented_[o] - top);
            best = std::max(best, target_[o]);
        }
        // The threshold of the projection lies within 1 of the largest entry; entries below it drop out until none
        // does (Michelot).
        active_.clear();
        double sum = 0.0;
        for (std::size_t o = 0; o < n_outputs_; ++o)
            if (target_[o] > best - 1.0) {
                active_.push_back(o);
                sum += target_[o];
            }
        double threshold = (sum - 1.0) / static_cast<double>(active_.size());
        for (bool dropped = true; dropped;) {
            dropped = false;
            std::size_t kept = 0;
            sum = 0.0;
            for (const std::size_t o : active_) {
                if (!(target_[o] > threshold)) {
                    dropped = true;
                    continue;
                }
                active_[kept++] = o;
                sum += target_[o];
            }
            active_.resize(kept);
            threshold = (sum - 1.0) / static_cast<double>(kept);
        }
        double gain = 0.0;
        for (std::size_t o = 0; o < n_outputs_; ++o) {
            const double now = std::max(target_[o] - threshold, 0.0), moved = weight * (now - alpha[o]);
            if (moved == 0.0) continue;
            gain += moved * (augmented_[o] - 0.5 * curvature * moved);
            alpha[o] = now;
            change[place(o, 0)] -= moved;
            scores[place(o, 0)] -= curvature * moved;
        }
        return gain;
    }

    double swap(std::size_t i, double* scores, const double* gram, double* change) {
        const std::size_t n_slots = table_.n_slots;
        double* alpha = alpha_of(i);
        std::size_t best = 0, worst = n_outputs_;
        for (std::size_t o = 0; o < n_outputs_; ++o) {
            if (augmented_[o] > augmented_[best]) best = o;
            if (alpha[o] > 0.0 && (worst == n_outputs_ || augmented_[o] < augmented_[worst])) worst = o;
        }
        const double slope = augmented_[best] - augmented_[worst];
        if (!(slope > 0.0)) return 0.0;
        // Slots of one output may have labels in common.
        double square = 0.0;
        for (std::size_t a = 0; a < n_slots; ++a)
            for (std::size_t b = 0; b < n_slots; ++b) {
                const auto label = [&](std::size_t o, std::size_t s) { return table_.outputs[o * n_slots + s]; };
                const int same = (label(best, a) == label(best, b)) + (label(worst, a) == label(worst, b)) -
                                 (label(best, a) == label(worst, b)) - (label(worst, a) == label(best, b));
                square += same * gram[a * n_slots + b];
            }
        const double weight = table_.weights[i];
        double step = alpha[worst];
        if (square > 0.0) step = std::min(step, slope / (weight * square));
        alpha[best] += step;
        alpha[worst] = step == alpha[worst] ? 0.0 : alpha[worst] - step;
        const double by = weight * step;
        for (std::size_t s = 0; s < n_slots; ++s) {
            change[place(best, s)] -= by;
            change[place(worst, s)] += by;
            const std::size_t up = place(best, s) - s * table_.n_labels, down = place(worst, s) - s * table_.n_labels;
            for (std::size_t a = 0; a < n_slots; ++a) {
                scores[a * table_.n_labels + up] -= by * gram[s * n_slots + a];
                scores[a * table_.n_labels + down] += by * gram[s * n_slots + a];
            }
        }
        return by * (slope - 0.5 * by * square);
    }

    MarginTable table_;
    std::size_t n_outputs_;
    Aligned<double> alpha_;  // [n][q]
    std::vector<double> augmented_, target_;
    std::vector<std::size_t> active_;
};

}  // namespace

std::unique_ptr<DualBlocks> table_blocks(const MarginTable& table) {
    return std::make_unique<TableBlocks>(table);
}

}  // namespace dualfield
