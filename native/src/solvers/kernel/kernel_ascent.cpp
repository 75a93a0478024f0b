// Block-coordinate ascent on duals whose node scores come from a kernel.
//
//   dual(mu) = sum_i c_i [ T H(mu_i) + <D_i, mu_i> ] - 1/2 <B, K B> - 1/2 |w|^2,     B = sum_i c_i (u_i - mu_i)
//
// The scores F = K B of all points are kept up to date, by labels: F [n_labels][n_points]. Bringing them up to date
// costs a row of the kernel matrix for each point whose coefficients move, and is nearly all of the work. So examples
// are visited in sets: the scores of a set are copied out, its examples are visited a few times with the part of the
// matrix between its own points, and then all its changes go into F together, chunk by chunk of its columns, each while
// it is in the nearest caches. Examples with next to no share in the gap are passed over without asking for rows.
//
// Since F is at hand, primal(w(mu)) - dual(mu) costs no row at all, and is computed after each epoch. Hinge losses make
// the primal iterates jump around their mean: the mean of the last epochs is a candidate too, and the best primal point
// so far is the one that is returned.
//
// All of that may be in single precision, and is only a reason to look closer. What is claimed is proven in double
// precision: F of the dual point and F of the point that is returned are computed anew from their coefficients, and
// what rounding can have done to these sums is added to the gap. Where a proof fails, the ascent goes on.
#include "dualfield/solvers/kernel/kernel_ascent.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "dualfield/core/memory.hpp"
#include "dualfield/core/random.hpp"
#include "kernel_proof.hpp"
#include "score_update.hpp"

namespace dualfield {
namespace {

// Passed over: examples with less than this share of the mean gap, or of what the tolerance leaves to each.
constexpr double kPassOver = 0.5;
constexpr double kMeanWeight = 8.0;  // (1 + this) / (k + this) is the weight of epoch k in the mean
constexpr double kDense = 0.3;       // from this share of changed coefficients on all of them are multiplied
constexpr double kNoGain = 1e-14;    // what is less than this share of a value is rounding
constexpr int kPatience = 20;        // epochs without a gain, in a row, after which none is expected
constexpr int kMostProofs = 8;       // that may fail; each halves what is aimed at

// Columns are read as well as rows: an odd number of cache lines between rows spreads a column over all sets.
template <class T>
std::size_t spread(std::size_t n) {
    const std::size_t lines = padded_to_panels<T>(n) / kPanel<T>;
    return (lines | 1) * kPanel<T>;
}

template <class T>
class Ascent {
  public:
    Ascent(Gram<T>& gram, Gram<double>& exact, DualBlocks& blocks, const AscentSettings& settings, ThreadTeam& team,
           const Report& report)
        : gram_(gram),
          blocks_(blocks),
          settings_(settings),
          team_(team),
          report_(report),
          proof_(exact, blocks, team),
          update_(gram, team, blocks.n_labels()),
          n_points_(gram.size()),
          n_labels_(blocks.n_labels()),
          stride_(spread<T>(n_points_)),
          scores_(checked_product(n_labels_, stride_), T(0)),
          coefficients_(checked_product(n_points_, n_labels_), 0.0),
          local_of_(n_points_, -1),
          aim_(settings.tolerance) {
        for (std::size_t i = 0; i < blocks.n_examples(); ++i) {
            most_members_ = std::max(most_members_, blocks.members(i).size());
            if (!blocks.members(i).empty()) order_.push_back(i);
        }
        for (Buffer* buffer : {&own_scores_, &own_change_})
            buffer->require(checked_product(most_members_, n_labels_) + kLanes);
        own_gram_.require(checked_product(most_members_, most_members_));
        set_size_ = std::min(std::max(settings.set_size, most_members_), gram.most_rows());
        if (set_size_ < most_members_)
            throw std::invalid_argument("The cache is too small for the kernel rows of the largest example.");
    }

    AscentSolution solve(std::span<const double> start) {
        try {
            return solution(start);
        } catch (const NotPositive&) {
            if (sizeof(T) == sizeof(double)) throw;
            // So looks what single precision cannot hold, too: it gives up without a bound, and double precision
            // decides.
            AscentSolution nothing;
            nothing.coefficients.assign(coefficients_.size(), 0.0);
            nothing.weights.assign(blocks_.weights().size(), 0.0);
            nothing.objective = nothing.gap = kInfinity;
            nothing.outcome = Outcome::stalled;
            return nothing;
        }
    }

  private:
    AscentSolution solution(std::span<const double> start) {
        if (!start.empty() && blocks_.can_begin()) begin(start);
        rebuild();
        certify();
        keep_best(coefficients_, blocks_.weights(), primal_);
        AscentSolution found;
        found.outcome = ascend();
        report_(progress());
        found.coefficients = best_coefficients_;
        found.weights = best_weights_;
        found.objective = best_;
        found.gap = gap();
        found.n_iterations = n_iterations_;
        return found;
    }

    // What is known: proven once ascend() is done.
    double gap() const { return std::max(best_ - dual_, 0.0) + rounding_; }
    Progress progress() const { return {best_, best_ - gap(), gap(), passes_, clock_.seconds()}; }
    bool is_small() const { return best_ - dual_ <= aim_ * dual_; }

    Outcome ascend() {
        for (std::size_t epoch = 1;; ++epoch) {
            bool is_over = false, is_stuck = false;
            if (!is_small()) {
                const double dual = dual_, best = best_;
                is_over = !visit_all(epoch);
                if (!is_over) {
                    ++n_iterations_;
                    certify();
                    if (blocks_.wants_mean()) certify_mean();
                    // The dual comes to rest long before the primal does, whose distance is of the order of its root.
                    const bool gains = dual_ - dual > kNoGain * std::abs(dual_) || best - best_ > kNoGain * best_;
                    n_idle_ = gains ? 0 : n_idle_ + 1;
                    is_stuck = !has_moved_ || n_idle_ >= kPatience;
                }
                const bool is_spent = passes_ >= settings_.most_passes;
                if (!is_over && !is_stuck && !is_spent && !is_small() && report_(progress())) continue;
                is_over = is_over || !(is_stuck || is_spent || is_small());
            }
            prove();
            if (gap() <= settings_.tolerance * (best_ - gap()) || gap() == 0.0) return Outcome::converged;
            if (passes_ >= settings_.most_passes) return Outcome::iteration_limit;
            if (is_over) return Outcome::interrupted;
            // More digits than there are would be needed.
            if (is_stuck || ++n_failed_ > kMostProofs || rounding_ > settings_.tolerance * dual_)
                return Outcome::stalled;
            aim_ *= 0.5;
            rounding_ = 0.0;
            if (!report_(progress())) return prove(), Outcome::interrupted;
        }
    }

    void begin(std::span<const double> start) {
        std::copy(start.begin(), start.end(), coefficients_.begin());
        multiply(coefficients_);
        for (const std::size_t i : order_) {
            gather(i, scores_.data());
            blocks_.begin_at(i, own_scores_.data());
        }
    }

    // Scores of the members of an example, from rows by labels, into own_scores_ [m][K].
    void gather(std::size_t i, const T* scores) {
        const auto members = blocks_.members(i);
        double* out = own_scores_.data();
        for (const std::int32_t point : members)
            for (std::size_t k = 0; k < n_labels_; ++k)
                *out++ = static_cast<double>(scores[k * stride_ + static_cast<std::size_t>(point)]);
    }

    // One epoch, which moves something or does not; false if the callback ends the solve.
    bool visit_all(std::size_t epoch) {
        RandomStream random(settings_.seed, epoch);
        for (std::size_t left = order_.size(); left > 1; --left)
            std::swap(order_[left - 1], order_[random.next() % left]);
        const double each = 1.0 / static_cast<double>(order_.size());
        const double least = kPassOver * each * std::max(aim_ * dual_, primal_ - dual_);
        has_moved_ = false;
        begin_set();
        for (std::size_t at = 0; at < order_.size(); ++at) {
            const std::size_t i = order_[at];
            gather(i, scores_.data());
            if (blocks_.gap(i, own_scores_.data()) >= least) {
                if (points_.size() + blocks_.members(i).size() > set_size_) {
                    solve_set();
                    if (!report_(progress())) return false;
                    begin_set();
                }
                take_in(i);
            }
        }
        if (!examples_.empty()) solve_set();
        return true;
    }

    void begin_set() {
        examples_.clear();
        points_.clear();
    }
    void take_in(std::size_t i) {
        examples_.push_back(i);
        for (const std::int32_t point : blocks_.members(i)) {
            if (local_of_[static_cast<std::size_t>(point)] >= 0) continue;
            local_of_[static_cast<std::size_t>(point)] = static_cast<std::int32_t>(points_.size());
            points_.push_back(point);
        }
    }

    void solve_set() {
        const std::size_t n = points_.size();
        if (!gram_.is_streamed()) {
            rows_.resize(n);
            gram_.rows(points_, rows_.data(), team_);
        }
        copy_out(n);
        for (std::size_t sweep = 0; sweep < settings_.n_sweeps; ++sweep) {
            double gain = 0.0;
            for (const std::size_t i : examples_) gain += visit(i, n);
            dual_ += gain;
            if (gain == 0.0) break;
            has_moved_ = true;
        }
        check_curvature<T>(set_gram_.data(), set_stride_, set_change_.data(), n, n_labels_);
        bring_up_to_date(n);
        for (const std::int32_t point : points_) local_of_[static_cast<std::size_t>(point)] = -1;
        passes_ += static_cast<double>(n) / static_cast<double>(n_points_);
    }

    // The part of the matrix between the points of the set, and their scores, by labels.
    void copy_out(std::size_t n) {
        set_stride_ = spread<double>(n);
        double* gram = set_gram_.require(checked_product(n, set_stride_));
        double* scores = set_scores_.require(checked_product(n_labels_, set_stride_));
        std::fill_n(set_change_.require(checked_product(n, n_labels_)), n * n_labels_, 0.0);
        if (gram_.is_streamed()) {
            const std::size_t width = padded_to_panels<T>(n);
            if (between_.size() < n * width) between_ = Aligned<T>(checked_product(n, width));
            gram_.between(points_, between_.data(), width);
            for (std::size_t a = 0; a < n; ++a) std::copy_n(between_.data() + a * width, n, gram + a * set_stride_);
        } else {
            for (std::size_t a = 0; a < n; ++a)
                for (std::size_t b = 0; b < n; ++b)
                    gram[a * set_stride_ + b] = static_cast<double>(rows_[a][static_cast<std::size_t>(points_[b])]);
        }
        check_pairs(gram, set_stride_, n);
        for (std::size_t k = 0; k < n_labels_; ++k)
            for (std::size_t a = 0; a < n; ++a)
                scores[k * set_stride_ + a] =
                    static_cast<double>(scores_[k * stride_ + static_cast<std::size_t>(points_[a])]);
    }

    double visit(std::size_t i, std::size_t n) {
        const auto members = blocks_.members(i);
        const std::size_t m = members.size();
        locals_.clear();
        for (const std::int32_t point : members)
            locals_.push_back(static_cast<std::size_t>(local_of_[static_cast<std::size_t>(point)]));
        double *scores = own_scores_.data(), *change = own_change_.data(), *gram = own_gram_.data();
        for (std::size_t a = 0; a < m; ++a) {
            for (std::size_t k = 0; k < n_labels_; ++k)
                scores[a * n_labels_ + k] = set_scores_.data()[k * set_stride_ + locals_[a]];
            for (std::size_t b = 0; b < m; ++b)
                gram[a * m + b] = set_gram_.data()[locals_[a] * set_stride_ + locals_[b]];
        }
        std::fill_n(change, m * n_labels_, 0.0);
        const double gain = blocks_.visit(i, scores, gram, change);
        for (std::size_t a = 0; a < m; ++a) {
            const double* row = set_gram_.data() + locals_[a] * set_stride_;
            for (std::size_t k = 0; k < n_labels_; ++k) {
                const double by = change[a * n_labels_ + k];
                if (by == 0.0) continue;
                set_change_.data()[locals_[a] * n_labels_ + k] += by;
                double* target = set_scores_.data() + k * set_stride_;
                for (std::size_t b = 0; b < n; ++b) target[b] += by * row[b];
            }
        }
        return gain;
    }

    // The changes of a set into coefficients and the scores of all points.
    void bring_up_to_date(std::size_t n) {
        const double* change = set_change_.data();
        std::size_t n_changed = 0;
        for (std::size_t a = 0; a < n; ++a) {
            double* target = coefficients_.data() + static_cast<std::size_t>(points_[a]) * n_labels_;
            for (std::size_t k = 0; k < n_labels_; ++k) {
                target[k] += change[a * n_labels_ + k];
                n_changed += change[a * n_labels_ + k] != 0.0;
            }
        }
        const bool is_dense = static_cast<double>(n_changed) >= kDense * static_cast<double>(n * n_labels_);
        update_.add(points_, rows_, change, is_dense, scores_.data(), stride_);
    }

    // scores_ = K coefficients.
    void multiply(const std::vector<double>& coefficients) {
        rounded_.assign(coefficients.begin(), coefficients.end());
        gram_.product(rounded_.data(), n_labels_, scores_.data(), stride_, team_);
    }

    // Coefficients and weights from the dual points, without what rounding has left in them; true if any is not zero.
    bool settle() {
        std::fill(coefficients_.begin(), coefficients_.end(), 0.0);
        std::fill(blocks_.weights().begin(), blocks_.weights().end(), 0.0);
        double* out = own_change_.data();
        value_ = 0.0;
        bool any = false;
        for (const std::size_t i : order_) {
            value_ += blocks_.settle(i, out);
            const auto members = blocks_.members(i);
            for (std::size_t a = 0; a < members.size(); ++a)
                for (std::size_t k = 0; k < n_labels_; ++k) {
                    const double by = out[a * n_labels_ + k];
                    coefficients_[static_cast<std::size_t>(members[a]) * n_labels_ + k] += by;
                    any = any || by != 0.0;
                }
        }
        return any;
    }
    void rebuild() {
        if (settle())
            multiply(coefficients_);
        else
            std::fill(scores_.begin(), scores_.end(), T(0));
        dual_ = value_ - half_square(coefficients_, scores_, blocks_.weights());
    }

    double half_square(const std::vector<double>& coefficients, const Aligned<T>& scores,
                       std::span<const double> weights) const {
        return 0.5 * (inner_product(coefficients, scores.data(), stride_, n_labels_) + blocks_.square(weights));
    }
    double losses(const Aligned<T>& scores, const double* weights) {
        return sum_of_losses(blocks_, scores.data(), stride_, weights, own_scores_.data());
    }

    // Both bounds in double precision, and scores without the rounding of all steps before.
    void prove() {
        settle();
        const std::span<const double> weights = blocks_.weights();
        const ProvenValue now = proof_.value(coefficients_, weights);
        for (std::size_t k = 0; k < n_labels_; ++k)
            for (std::size_t j = 0; j < n_points_; ++j)
                scores_[k * stride_ + j] = static_cast<T>(proof_.scores()[k * proof_.stride() + j]);
        dual_ = value_ - now.half_square;
        primal_ = now.primal;
        ProvenValue kept = now;
        if (best_coefficients_ != coefficients_) kept = proof_.value(best_coefficients_, best_weights_);
        best_ = kept.primal;
        if (primal_ < best_) keep_best(coefficients_, weights, primal_);
        if (proven_ < best_) {  // what looked better in single precision was not
            best_ = proven_;
            best_coefficients_ = proven_coefficients_;
            best_weights_ = proven_weights_;
        }
        proven_ = best_;
        proven_coefficients_ = best_coefficients_;
        proven_weights_ = best_weights_;
        // Losses are sums of our own, of which nothing comes from outside.
        const double scale = now.scale + kept.scale, reach = now.reach + kept.reach;
        require_positive(best_ - dual_, scale + kClearly * reach, kClearly);
        proven_dual_ = std::max(proven_dual_, dual_);
        dual_ = proven_dual_;
        rounding_ = kProofRounding * (scale + reach);
    }

    // primal_ at the point of now, and whether it is the best one.
    void certify() {
        primal_ = half_square(coefficients_, scores_, blocks_.weights()) + losses(scores_, blocks_.weights().data());
        if (primal_ < best_) keep_best(coefficients_, blocks_.weights(), primal_);
    }
    void certify_mean() {
        const double share = (1.0 + kMeanWeight) / (static_cast<double>(n_iterations_) + kMeanWeight);
        const auto weights = blocks_.weights();
        if (n_iterations_ == 1) {
            mean_scores_ = Aligned<T>(scores_.size());
            std::copy(scores_.begin(), scores_.end(), mean_scores_.begin());
            mean_coefficients_ = coefficients_;
            mean_weights_.assign(weights.begin(), weights.end());
            return;
        }
        for (std::size_t j = 0; j < scores_.size(); ++j)
            mean_scores_[j] += static_cast<T>(share) * (scores_[j] - mean_scores_[j]);
        for (std::size_t j = 0; j < coefficients_.size(); ++j)
            mean_coefficients_[j] += share * (coefficients_[j] - mean_coefficients_[j]);
        for (std::size_t j = 0; j < weights.size(); ++j) mean_weights_[j] += share * (weights[j] - mean_weights_[j]);
        const double primal =
            half_square(mean_coefficients_, mean_scores_, mean_weights_) + losses(mean_scores_, mean_weights_.data());
        if (primal < best_) keep_best(mean_coefficients_, mean_weights_, primal);
    }
    void keep_best(const std::vector<double>& coefficients, std::span<const double> weights, double primal) {
        best_ = primal;
        best_coefficients_ = coefficients;
        best_weights_.assign(weights.begin(), weights.end());
    }
    Gram<T>& gram_;
    DualBlocks& blocks_;
    const AscentSettings& settings_;
    ThreadTeam& team_;
    const Report& report_;
    Proof proof_;
    ScoreUpdate<T> update_;
    Clock clock_;
    std::size_t n_points_, n_labels_, stride_, most_members_ = 0, set_size_ = 0, set_stride_ = 0;
    Aligned<T> scores_, mean_scores_;                                           // [K][stride]
    std::vector<double> coefficients_, mean_coefficients_, best_coefficients_;  // [n_points][K]
    std::vector<double> mean_weights_, best_weights_, proven_weights_, proven_coefficients_;
    std::vector<std::int32_t> local_of_, points_;  // place of a point in the set, or -1; points of the set
    std::vector<std::size_t> order_, examples_, locals_;
    std::vector<const T*> rows_;
    std::vector<T> rounded_;
    Aligned<T> between_;
    Buffer own_scores_, own_change_, own_gram_, set_gram_, set_scores_, set_change_;
    double primal_ = kInfinity, best_ = kInfinity, dual_ = 0.0, value_ = 0.0, passes_ = 0.0;
    double proven_ = kInfinity, proven_dual_ = -kInfinity, rounding_ = 0.0, aim_;
    std::size_t n_iterations_ = 0;
    int n_idle_ = 0, n_failed_ = 0;
    bool has_moved_ = false;
};

}  // namespace

template <class T>
AscentSolution solve_kernel_ascent(Gram<T>& gram, Gram<double>& exact, DualBlocks& blocks,
                                   std::span<const double> start, const AscentSettings& settings, ThreadTeam& team,
                                   const Report& report) {
    return Ascent<T>(gram, exact, blocks, settings, team, report).solve(start);
}
template AscentSolution solve_kernel_ascent<float>(Gram<float>&, Gram<double>&, DualBlocks&, std::span<const double>,
                                                   const AscentSettings&, ThreadTeam&, const Report&);
template AscentSolution solve_kernel_ascent<double>(Gram<double>&, Gram<double>&, DualBlocks&, std::span<const double>,
                                                    const AscentSettings&, ThreadTeam&, const Report&);

}  // namespace dualfield
