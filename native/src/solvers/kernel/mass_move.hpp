// One variable of an entropy-regularised dual, solved exactly: mass u moves within points until the forces balance.
//
//   find u >= 0 with   force - bend u = sum_k log((to_k + u) / (from_k - u)),   from_k - u >= least_k.
//
// Keerthi's pair of points has two ends (from_k, to_k), his bias-free step and Memisevic's pair of classes have one.
// Masses are solved for from whichever side they come close to zero, so that both keep their relative precision however
// small they get (a_i near 0 or C in Keerthi et al., section 5, is no special case).
#pragma once

#include <algorithm>
#include <cmath>

namespace dualfield {

struct MassEnd {
    double from, to, least;  // least: a closed box instead of the open one of the papers
};

template <int N>
class MassMove {
  public:
    MassMove(double force, double bend, const MassEnd (&ends)[N]) : force_(force), bend_(bend), room_(ends[0].from) {
        for (int k = 0; k < N; ++k) {
            ends_[k] = ends[k];
            room_ = std::min(room_, ends[k].from);
        }
        left_ = room_;
    }

    // Safeguarded Newton to |imbalance| <= tolerance. imbalance: the one at u = 0, positive.
    double solve(double imbalance, double tolerance) {
        // Room that must stay: the smallest end keeps at least this much.
        double keep = 0.0;
        for (const MassEnd& end : ends_) keep = std::max(keep, end.least - (end.from - room_));
        if (!(imbalance > tolerance) || !(keep < room_)) return 0.0;
        // The logarithms only slow the move down: imbalance - bend u bounds the imbalance at u from above.
        const double half = std::min(0.5 * room_, room_ - keep);
        if (imbalance < bend_ * half) return grow(imbalance, imbalance / bend_, tolerance);
        if (!(at_room(room_ - half) > tolerance)) return grow(imbalance, half, tolerance);
        return shrink(keep, room_ - half, tolerance);
    }

    // The ends after a move that solve() returned.
    MassEnd after(int k) const {
        const MassEnd& end = ends_[k];
        return {.from = (end.from - room_) + left_, .to = end.to + moved_, .least = end.least};
    }

    // How far the dual rises: what the forces do, less what the entropy takes back, sum_k KL(after || before).
    double gain(double imbalance) const {
        double total = moved_ * (imbalance - 0.5 * bend_ * moved_);
        for (int k = 0; k < N; ++k) {
            const MassEnd& end = ends_[k];
            const double rest = after(k).from;
            total -= (end.to + moved_) * std::log1p(moved_ / end.to);
            total -= rest * (rest > 0.5 * end.from ? std::log1p(-moved_ / end.from) : std::log(rest / end.from));
        }
        return total;
    }

  private:
    double at_room(double left) {
        left_ = left;
        moved_ = room_ - left;
        return evaluate();
    }
    double at_move(double moved) {
        moved_ = moved;
        left_ = room_ - moved;
        return evaluate();
    }
    // The imbalance, and slope_ = minus its derivative along u.
    double evaluate() {
        double to = 1.0, from = 1.0;
        slope_ = bend_;
        for (const MassEnd& end : ends_) {
            const double grown = end.to + moved_, shrunk = (end.from - room_) + left_;
            to *= grown;
            from *= shrunk;
            slope_ += (grown + shrunk) / (grown * shrunk);
        }
        return force_ - bend_ * moved_ - std::log(to / from);
    }

    // u between 0 and high, where the imbalance is negative. Newton in log(to + u) where the logarithm bends more than
    // the force, in u where it is the other way round.
    double grow(double imbalance, double high, double tolerance) {
        double low = 0.0, base = ends_[0].to;
        slope_ = bend_;
        for (const MassEnd& end : ends_) {
            base = std::min(base, end.to);
            slope_ += (end.to + end.from) / (end.to * end.from);
        }
        moved_ = 0.0;
        left_ = room_;
        for (int step = 0; step < kMostSteps && std::abs(imbalance) > tolerance; ++step) {
            (imbalance > 0.0 ? low : high) = moved_;
            const double newton = imbalance / slope_, mass = base + moved_;
            double next = moved_ + (bend_ * mass < 1.0 ? mass * std::expm1(newton / mass) : newton);
            if (!(next > low && next < high))
                next = base + high > 4.0 * (base + low) ? std::sqrt((base + low) * (base + high)) - base
                                                        : 0.5 * (low + high);
            if (next == moved_ || !(next > low && next < high)) break;
            imbalance = at_move(next);
        }
        return moved_;
    }

    // What is left between low and high, where the imbalance is still positive; the mirror image of grow().
    double shrink(double low, double high, double tolerance) {
        bool low_is_known = false;
        double imbalance = at_room(high);
        for (int step = 0; step < kMostSteps && std::abs(imbalance) > tolerance; ++step) {
            (imbalance > 0.0 ? high : low) = left_;
            low_is_known = low_is_known || imbalance < 0.0;
            const double newton = imbalance / slope_;
            double next = bend_ * left_ < 1.0 ? left_ * std::exp(-newton / left_) : left_ - newton;
            if (!(next > low)) {
                if (!low_is_known) {
                    imbalance = at_room(low);
                    if (imbalance >= 0.0) break;  // the end of the box
                    low_is_known = true;
                    continue;
                }
                next = std::sqrt(low * high);
            } else if (!(next < high)) {
                next = std::sqrt(low * high);
            }
            if (next == left_ || !(next > low && next < high)) break;
            imbalance = at_room(next);
        }
        return moved_;
    }

    static constexpr int kMostSteps = 60;
    double force_, bend_, room_;
    MassEnd ends_[N];
    double moved_ = 0.0, left_ = 0.0, slope_ = 0.0;
};

}  // namespace dualfield
