// Block-coordinate ascent on duals whose scores come from kernels.
//
//   dual(mu) = sum_i c_i [ T H(mu_i) + <D_i, mu_i> ] - 1/2 sum_g <B_g, K_g B_g> - 1/2 |w|^2,
//   B_g = s_g sum_i c_i (u_i - mu_i),
//
// with a kernel matrix K_g and a scale s_g for each table of rows that is scored, nodes and pairs of nodes. The scores
// F = K B of all points are kept up to date (kernel_scores.hpp). Bringing them up to date costs a row of the kernel
// matrix for each point whose coefficients move, and is nearly all of the work. So examples are visited in sets: the
// scores of a set are copied out, its examples are visited a few times with the part of the matrix between its own
// points, and then all its changes go into F together, chunk by chunk of its columns, each while it is in the nearest
// caches. Examples with next to no share in the gap are passed over without asking for rows.
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
#include <vector>

#include "dualfield/core/memory.hpp"
#include "dualfield/core/random.hpp"
#include "kernel_proof.hpp"
#include "kernel_scores.hpp"

namespace dualfield {
namespace {

// Passed over: examples with less than this share of the mean gap, or of what the tolerance leaves to each.
constexpr double kPassOver = 0.5;
constexpr double kMeanWeight = 8.0;  // (1 + this) / (k + this) is the weight of epoch k in the mean
constexpr double kNoGain = 1e-14;    // what is less than this share of a value is rounding
constexpr int kPatience = 20;        // epochs without a gain, in a row, after which none is expected
constexpr int kMostProofs = 8;       // that may fail; each halves what is aimed at

template <class T>
class Ascent {
  public:
    Ascent(std::span<const TableGram<T>> tables, DualBlocks& blocks, const AscentSettings& settings, ThreadTeam& team,
           const Report& report)
        : blocks_(blocks),
          settings_(settings),
          report_(report),
          proof_(exact_grams(tables), blocks, team),
          aim_(settings.tolerance) {
        std::size_t most_scores = 0, most_values = 0;
        for (std::size_t i = 0; i < blocks.n_examples(); ++i) {
            most_scores = std::max(most_scores, blocks.n_scores(i));
            most_values = std::max(most_values, blocks.n_values(i));
            if (blocks.is_there(i)) order_.push_back(i);
        }
        for (Buffer* buffer : {&own_scores_, &own_change_}) buffer->require(most_scores + kLanes);
        own_gram_.require(most_values + kLanes);
        scores_.reserve(tables.size());
        for (std::size_t g = 0; g < tables.size(); ++g) {
            std::size_t most = 0;
            for (const std::size_t i : order_) most = std::max(most, blocks.members(g, i).size());
            scores_.emplace_back(*tables[g].gram, blocks.width(g), blocks.scale(g), most, settings.set_size, team);
            coefficients_.emplace_back(checked_product(scores_[g].n_points(), blocks.width(g)), 0.0);
            n_points_ += scores_[g].n_points();
        }
        for (const KernelScores<T>& one : scores_) all_.push_back(one.all());
    }

    AscentSolution solve(const Coefficients& start) {
        try {
            return solution(start);
        } catch (const NotPositive&) {
            if (sizeof(T) == sizeof(double)) throw;
            // So looks what single precision cannot hold, too: it gives up without a bound, and double precision
            // decides.
            AscentSolution nothing;
            nothing.coefficients = coefficients_;
            for (std::vector<double>& one : nothing.coefficients) std::fill(one.begin(), one.end(), 0.0);
            nothing.weights.assign(blocks_.weights().size(), 0.0);
            nothing.objective = nothing.gap = kInfinity;
            nothing.outcome = Outcome::stalled;
            return nothing;
        }
    }

  private:
    AscentSolution solution(const Coefficients& start) {
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

    void begin(const Coefficients& start) {
        coefficients_ = start;
        multiply();
        for (const std::size_t i : order_) {
            gather(i);
            blocks_.begin_at(i, own_scores_.data());
        }
    }

    static std::vector<Gram<double>*> exact_grams(std::span<const TableGram<T>> tables) {
        std::vector<Gram<double>*> found;
        for (const TableGram<T>& table : tables) found.push_back(table.exact);
        return found;
    }
    // Scores of an example into own_scores_.
    void gather(std::size_t i) { gather_scores<T>(blocks_, i, all_, own_scores_.data()); }

    // One epoch, which moves something or does not; false if the callback ends the solve.
    bool visit_all(std::size_t epoch) {
        RandomStream random(settings_.seed, epoch);
        shuffle(order_, random);
        const double each = 1.0 / static_cast<double>(order_.size());
        const double least = kPassOver * each * std::max(aim_ * dual_, primal_ - dual_);
        has_moved_ = false;
        begin_set();
        for (std::size_t at = 0; at < order_.size(); ++at) {
            const std::size_t i = order_[at];
            gather(i);
            if (blocks_.gap(i, own_scores_.data()) >= least) {
                if (!has_room(i)) {
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
        for (KernelScores<T>& one : scores_) one.begin_set();
    }
    bool has_room(std::size_t i) const {
        for (std::size_t g = 0; g < scores_.size(); ++g)
            if (!scores_[g].has_room(blocks_.members(g, i).size())) return false;
        return true;
    }
    void take_in(std::size_t i) {
        examples_.push_back(i);
        for (std::size_t g = 0; g < scores_.size(); ++g) scores_[g].take_in(blocks_.members(g, i));
    }

    void solve_set() {
        std::size_t n = 0;
        for (KernelScores<T>& one : scores_) {
            one.open_set();
            n += one.n_in_set();
        }
        for (std::size_t sweep = 0; sweep < settings_.n_sweeps; ++sweep) {
            double gain = 0.0;
            for (const std::size_t i : examples_) gain += visit(i);
            dual_ += gain;
            if (gain == 0.0) break;
            has_moved_ = true;
        }
        for (std::size_t g = 0; g < scores_.size(); ++g) scores_[g].close_set(coefficients_[g]);
        passes_ += static_cast<double>(n) / static_cast<double>(n_points_);
    }

    double visit(std::size_t i) {
        double *scores = own_scores_.data(), *change = own_change_.data(), *gram = own_gram_.data();
        for (std::size_t g = 0; g < scores_.size(); ++g) {
            const auto members = blocks_.members(g, i);
            scores_[g].read(members, scores, gram);
            scores += members.size() * scores_[g].width();
            gram += members.size() * members.size();
        }
        std::fill_n(change, blocks_.n_scores(i), 0.0);
        const double gain = blocks_.visit(i, own_scores_.data(), own_gram_.data(), change);
        for (std::size_t g = 0; g < scores_.size(); ++g) {
            const auto members = blocks_.members(g, i);
            scores_[g].change(members, change);
            change += members.size() * scores_[g].width();
        }
        return gain;
    }

    void multiply() {
        for (std::size_t g = 0; g < scores_.size(); ++g) scores_[g].multiply(coefficients_[g]);
    }

    // Coefficients and weights from the dual points, without what rounding has left in them; true if any is not zero.
    bool settle() {
        for (std::vector<double>& one : coefficients_) std::fill(one.begin(), one.end(), 0.0);
        std::fill(blocks_.weights().begin(), blocks_.weights().end(), 0.0);
        value_ = 0.0;
        bool any = false;
        for (const std::size_t i : order_) {
            const double* by = own_change_.data();
            value_ += blocks_.settle(i, own_change_.data());
            for (std::size_t g = 0; g < scores_.size(); ++g)
                for (const std::int32_t point : blocks_.members(g, i)) {
                    double* target = coefficients_[g].data() + static_cast<std::size_t>(point) * scores_[g].width();
                    for (std::size_t k = 0; k < scores_[g].width(); ++k, ++by) {
                        target[k] += blocks_.scale(g) * *by;
                        any = any || *by != 0.0;
                    }
                }
        }
        return any;
    }
    void rebuild() {
        if (settle())
            multiply();
        else
            for (KernelScores<T>& one : scores_) one.clear();
        dual_ = value_ - half_square(coefficients_, all_, blocks_.weights());
    }

    double half_square(const Coefficients& coefficients, const std::vector<ScoresOfPoints<T>>& scores,
                       std::span<const double> weights) const {
        double square = 0.0;
        for (std::size_t g = 0; g < scores.size(); ++g)
            square += inner_product(coefficients[g], scores[g], scores_[g].width());
        return 0.5 * (square + blocks_.square(weights));
    }
    double primal(const Coefficients& coefficients, const std::vector<ScoresOfPoints<T>>& scores,
                  std::span<const double> weights) {
        return half_square(coefficients, scores, weights) +
               sum_of_losses<T>(blocks_, scores, weights.data(), own_scores_.data());
    }

    // Both bounds in double precision, and scores without the rounding of all steps before.
    void prove() {
        settle();
        const std::span<const double> weights = blocks_.weights();
        const ProvenValue now = proof_.value(coefficients_, weights);
        for (std::size_t g = 0; g < scores_.size(); ++g) scores_[g].take(proof_.scores(g));
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
        primal_ = primal(coefficients_, all_, blocks_.weights());
        if (primal_ < best_) keep_best(coefficients_, blocks_.weights(), primal_);
    }
    void certify_mean() {
        const double share = (1.0 + kMeanWeight) / (static_cast<double>(n_iterations_) + kMeanWeight);
        const auto weights = blocks_.weights();
        if (n_iterations_ == 1) {
            for (KernelScores<T>& one : scores_) {
                one.begin_mean();
                mean_.push_back(one.mean());
            }
            mean_coefficients_ = coefficients_;
            mean_weights_.assign(weights.begin(), weights.end());
            return;
        }
        for (std::size_t g = 0; g < scores_.size(); ++g) {
            scores_[g].move_mean(share);
            std::vector<double>& mean = mean_coefficients_[g];
            for (std::size_t j = 0; j < mean.size(); ++j) mean[j] += share * (coefficients_[g][j] - mean[j]);
        }
        for (std::size_t j = 0; j < weights.size(); ++j) mean_weights_[j] += share * (weights[j] - mean_weights_[j]);
        const double value = primal(mean_coefficients_, mean_, mean_weights_);
        if (value < best_) keep_best(mean_coefficients_, mean_weights_, value);
    }
    void keep_best(const Coefficients& coefficients, std::span<const double> weights, double primal) {
        best_ = primal;
        best_coefficients_ = coefficients;
        best_weights_.assign(weights.begin(), weights.end());
    }

    DualBlocks& blocks_;
    const AscentSettings& settings_;
    const Report& report_;
    Proof proof_;
    Clock clock_;
    std::vector<KernelScores<T>> scores_;  // of each table
    std::vector<ScoresOfPoints<T>> all_, mean_;
    Coefficients coefficients_, mean_coefficients_, best_coefficients_, proven_coefficients_;
    std::vector<double> mean_weights_, best_weights_, proven_weights_;
    std::vector<std::size_t> order_, examples_;
    Buffer own_scores_, own_change_, own_gram_;  // of one example
    double primal_ = kInfinity, best_ = kInfinity, dual_ = 0.0, value_ = 0.0, passes_ = 0.0;
    double proven_ = kInfinity, proven_dual_ = -kInfinity, rounding_ = 0.0, aim_;
    std::size_t n_points_ = 0, n_iterations_ = 0;
    int n_idle_ = 0, n_failed_ = 0;
    bool has_moved_ = false;
};

}  // namespace

template <class T>
AscentSolution solve_kernel_ascent(std::span<const TableGram<T>> tables, DualBlocks& blocks, const Coefficients& start,
                                   const AscentSettings& settings, ThreadTeam& team, const Report& report) {
    return Ascent<T>(tables, blocks, settings, team, report).solve(start);
}
template AscentSolution solve_kernel_ascent<float>(std::span<const TableGram<float>>, DualBlocks&, const Coefficients&,
                                                   const AscentSettings&, ThreadTeam&, const Report&);
template AscentSolution solve_kernel_ascent<double>(std::span<const TableGram<double>>, DualBlocks&,
                                                    const Coefficients&, const AscentSettings&, ThreadTeam&,
                                                    const Report&);

}  // namespace dualfield
