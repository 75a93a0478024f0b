#include "dualfield/regularisers/table_rows.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "dualfield/core/parallel.hpp"

namespace dualfield {
namespace {

constexpr double kClose = 1e-13;  // how far the logarithm of a sum may be from 0
constexpr int kMostSteps = 100;

// One step of the iteration of Fritsch, Shafer and Crowley for w + log w = z: the error falls with its fourth power.
double refine(double w, double z) {
    const double r = z - w - std::log(w), one = 1.0 + w, q = 2.0 * one * (one + 2.0 / 3.0 * r);
    return w * (1.0 + r / one * (q - r) / (q - 2.0 * r));
}

class Row {
  public:
    Row(std::span<const double> target, double floor, std::span<double> theta)
        : target_(target), theta_(theta), floor_(floor), least_(std::exp(floor)) {}

    double project() {
        const double highest = *std::max_element(target_.begin(), target_.end());
        if (highest <= 0.0) {
            // The multiplier may be 0: then theta is the target itself.
            const Sums at_zero = sums(0.0);
            if (at_zero.excess <= 0.0) return 0.0;
            return search(at_zero.excess / -at_zero.slope);
        }
        // Here the highest entry has theta = 0, so that the sum is at least 1: left of the root.
        return search(highest);
    }

  private:
    struct Sums {
        double excess, slope;  // the logarithm of the sum, and its derivative by the multiplier
    };

    // The logarithm of the sum is convex and falls with the multiplier, so that Newton's method from the left goes
    // right without overshooting.
    double search(double nu) {
        for (int step = 0; step < kMostSteps; ++step) {
            const Sums now = sums(nu);
            if (std::fabs(now.excess) <= kClose || !(now.slope < 0.0)) break;
            const double next = nu - now.excess / now.slope;
            if (!(std::fabs(next - nu) > 1e-16 * nu)) break;
            nu = std::max(next, 0.0);
        }
        return nu;
    }

    Sums sums(double nu) {
        const double log_nu = std::log(nu);
        double total = 0.0, turn = 0.0;
        for (std::size_t j = 0; j < target_.size(); ++j) {
            double chance;
            if (nu > 0.0) {
                const double w = wright_omega(target_[j] + log_nu);
                // Without cancellation where w is large.
                theta_[j] = w > 1.0 ? std::log(w) - log_nu : target_[j] - w;
                chance = w / nu;
            } else {
                theta_[j] = target_[j];
                chance = std::exp(target_[j]);
            }
            if (theta_[j] <= floor_) {
                theta_[j] = floor_;
                total += least_;
                continue;
            }
            total += chance;
            turn += chance * chance / (1.0 + nu * chance);
        }
        return {std::log(total), -turn / total};
    }

    std::span<const double> target_;
    std::span<double> theta_;
    double floor_, least_;
};

}  // namespace

double wright_omega(double z) {
    if (z > 1e8) return z - std::log(z);
    double w = z > 1.0 ? z - std::log(z) : z < -2.0 ? std::exp(z) : std::exp(2.0 * (z - 1.0) / 3.0);
    if (w < 1e-300) return w;
    w = refine(w, z);
    return refine(w, z);
}

void project_rows(const double* target, const std::int64_t* starts, std::size_t n_rows, double floor,
                  std::size_t n_threads, double* theta, double* nu) {
    parallel_for(n_rows, n_threads, [&](std::size_t, std::size_t i) {
        const std::size_t begin = starts[i], size = starts[i + 1] - starts[i];
        nu[i] = Row({target + begin, size}, floor, {theta + begin, size}).project();
    });
}

}  // namespace dualfield
