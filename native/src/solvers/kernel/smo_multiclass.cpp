// Sequential minimal optimisation for softmax problems (Memisevic 2006, Algorithm 1).
//
// Points are visited in random order; at each, mass moves between the two classes whose g(y) = log p_y - F_y - b_y is
// smallest and largest (his 11 and 12), by the exact solution of the one-variable problem: his (9) with c(y) corrected,
// so that the force is the difference of the present scores. Scores of all points are kept current, and the duality gap
// is measured after each sweep: no single point ends the work.
//
// With a bias the coefficients must sum to zero over the points, which no move at one point can keep. Sweeps then climb
// an augmented Lagrangian: kernel k + kappa, and multipliers b += kappa sum_i B_i after each sweep. For a certificate
// the point is tilted onto the plane sum_i B_i = 0; its scores, one product, and their best bias give an honest gap,
// and the next sweep starts from there. The multipliers do not take over the best bias: that was seen to diverge for
// large C.
#include <limits>

#include "dualfield/core/random.hpp"
#include "mass_move.hpp"
#include "softmax_dual.hpp"

namespace dualfield {

namespace {

template <class T>
class MulticlassSmo {
  public:
    MulticlassSmo(const KernelProblem<T>& problem, const StopRule& rule, const SmoSettings& settings, ThreadTeam& team,
                  const Report& report)
        : problem_(problem),
          rule_(rule),
          settings_(settings),
          team_(team),
          report_(report),
          n_(problem.size()),
          classes_(problem.n_classes),
          top_diagonal_(checked_diagonal(problem.gram->diagonal(), problem.noise)),
          dual_(problem, team),
          multipliers_(classes_, 0.0),
          offsets_(classes_, 0.0),
          score_(classes_),
          change_(classes_) {
        double mean = 0.0;
        for (const T value : problem.gram->diagonal()) mean += static_cast<double>(value) / static_cast<double>(n_);
        // As stiff as a tenth of the kernel, or as the entropy of all points together where that is more.
        if (problem.with_bias) kappa_ = 0.1 * mean + 4.0 * static_cast<double>(classes_) / dual_.total();
    }

    KernelSolution solve(const KernelStart& start) {
        const std::size_t first = dual_.first_row();
        for (std::size_t r = 0; r < start.bias.size() && problem_.with_bias; ++r)
            multipliers_[r + first] = start.bias[r];
        dual_.begin(start, floor_);
        if (problem_.with_bias) dual_.fit_bias(multipliers_);
        certify(multipliers_);
        check_number<T>(best_.gap);
        KernelSolution solution;
        solution.outcome = run(solution.n_iterations);
        solution.coefficients = problem_.with_bias ? certified_ : dual_.coefficients();
        solution.bias.assign(certified_bias_.begin() + static_cast<std::ptrdiff_t>(first), certified_bias_.end());
        solution.objective = best_.dual + best_.gap;
        solution.gap = best_.gap;
        solution.passes = passes();
        return solution;
    }

  private:
    static constexpr std::size_t kRowsAhead = 16;  // rows asked for at once
    static constexpr double kReview = 50.0;        // passes

    double passes() const { return dual_.n_products() + static_cast<double>(n_rows_) / static_cast<double>(n_); }
    bool reached(double gap, double dual) const { return dual > 0.0 && gap <= rule_.tolerance * dual; }

    // The gap of the present point, which is feasible; with a bias, the best such point is kept.
    void certify(const std::vector<double>& bias) {
        const DualMeasure here = dual_.measure(bias);
        lost_ = !std::isfinite(here.gap);
        if (problem_.with_bias) {
            if (!certified_.empty() && here.gap >= best_.gap) return;
            certified_ = dual_.coefficients();
        }
        best_ = here;
        certified_bias_ = bias;
    }

    Outcome run(std::size_t& sweep) {
        double next_review = passes() + kReview, reviewed_dual = best_.dual;
        int n_idle_reviews = 0;
        for (;; ++sweep) {
            const bool spent = passes() >= rule_.most_passes, review = passes() >= next_review;
            if (sweep > 0) update_certificate(sweep, spent || quiet_ || review);
            if (lost_) {  // the multipliers ran away, and the best point is one from before
                check_number<T>(best_.gap);
                return Outcome::stalled;
            }
            const bool go_on = tell();
            if (reached(best_.gap, best_.dual)) return Outcome::converged;
            if (!go_on) return Outcome::interrupted;
            if (spent) return Outcome::iteration_limit;
            if (quiet_ && !recover()) return Outcome::stalled;
            if (review) {
                // Sweeps raise the dual; where rounding undoes that for long, there is nothing to wait for.
                n_idle_reviews = best_.dual > reviewed_dual + 1e-3 * best_.gap ? 0 : n_idle_reviews + 1;
                if (n_idle_reviews > 3) return Outcome::stalled;
                reviewed_dual = std::max(reviewed_dual, best_.dual);
                next_review = passes() + kReview;
            }
            if (!visit_all(sweep)) {
                if (!problem_.with_bias) certify(multipliers_);
                return Outcome::interrupted;
            }
        }
    }

    // After a sweep. With a bias a certificate costs a product: it is asked for where it may end the work, and now and
    // then.
    void update_certificate(std::size_t sweep, bool needed) {
        if (!problem_.with_bias) {
            certify(multipliers_);
            if (sizeof(T) == sizeof(float) && (needed || reached(best_.gap, best_.dual))) {
                dual_.product();
                certify(multipliers_);
            }
            return;
        }
        double distance = 0.0;
        for (std::size_t y = dual_.first_row(); y < classes_; ++y) {
            multipliers_[y] += kappa_ * dual_.sums()[y];
            distance += dual_.sums()[y] * dual_.sums()[y];
        }
        update_offsets();
        const DualMeasure here = dual_.measure(offsets_);
        lost_ = !std::isfinite(here.gap);
        if (lost_) return;
        if (!needed && sweep % 10 != 0 && !reached(here.gap + 5.0 * kappa_ * distance, here.dual)) return;
        dual_.tilt();
        dual_.product();
        std::vector<double> bias = multipliers_;
        dual_.fit_bias(bias);
        certify(bias);
    }

    bool tell() {
        const double now = last_report_ = clock_.seconds();
        return report_({best_.dual + best_.gap, best_.dual, best_.gap, passes(), now});
    }

    // A sweep moved nothing, and the gap is too large: rounding, or the floor under p.
    bool recover() {
        if (best_.gap < 0.5 * quiet_gap_) {
            quiet_gap_ = best_.gap;
            return true;
        }
        floor_ *= floor_;
        return floor_ > 1e-300;
    }

    // One sweep; false if it was interrupted.
    bool visit_all(std::size_t sweep) {
        RandomStream random(settings_.seed, sweep);
        std::vector<std::int32_t> order(n_);
        std::iota(order.begin(), order.end(), 0);
        shuffle(order, random);
        const std::size_t ahead = std::min(problem_.gram->most_rows(), kRowsAhead);
        std::vector<const T*> rows(ahead);
        update_offsets();
        quiet_ = true;
        std::size_t work = 0;
        for (std::size_t first = 0; first < n_; first += ahead) {
            const auto batch = std::span(order).subspan(first, std::min(ahead, n_ - first));
            problem_.gram->rows(batch, rows.data(), team_);
            for (std::size_t k = 0; k < batch.size(); ++k) visit(static_cast<std::size_t>(batch[k]), rows[k]);
            work += n_ * batch.size();
            if (work < 200000) continue;
            work = 0;
            if (clock_.seconds() - last_report_ > 0.2 && !tell()) return false;
        }
        return true;
    }

    void update_offsets() {
        for (std::size_t y = 0; y < classes_; ++y) offsets_[y] = multipliers_[y] + kappa_ * dual_.sums()[y];
    }

    void visit(std::size_t l, const T* row) {
        for (std::size_t y = 0; y < classes_; ++y) {
            score_[y] = dual_.score(l, y) + offsets_[y];
            change_[y] = 0.0;
        }
        bool moved = false;
        for (std::size_t repeat = 0; repeat < settings_.repeats && move_pair(l); ++repeat) moved = true;
        if (!moved) return;
        quiet_ = false;
        dual_.spread(row, change_);
        for (std::size_t y = 0; y < classes_; ++y)
            offsets_[y] += kappa_ * change_[y] * (y < dual_.first_row() ? 0.0 : 1.0);
        ++n_rows_;
    }

    // The pair that violates optimality most at point l; false if there is nothing to move.
    bool move_pair(std::size_t l) {
        const double *mass = dual_.mass(l), *log_p = dual_.log_p(l), least = dual_.weight(l) * floor_;
        std::size_t grows = 0, shrinks = classes_;
        for (std::size_t y = 0; y < classes_; ++y) {
            if (log_p[y] - score_[y] < log_p[grows] - score_[grows]) grows = y;
            if (mass[y] <= least * (1.0 + 1e-9)) continue;
            if (shrinks == classes_ || log_p[y] - score_[y] > log_p[shrinks] - score_[shrinks]) shrinks = y;
        }
        if (shrinks == classes_ || grows == shrinks) return false;
        const double force = score_[grows] - score_[shrinks], imbalance = force - (log_p[grows] - log_p[shrinks]);
        const double size = std::max({1.0, std::abs(score_[grows]), std::abs(score_[shrinks])});
        if (!(imbalance > 4.0 * static_cast<double>(std::numeric_limits<T>::epsilon()) * size)) return false;
        const double diagonal = static_cast<double>(problem_.gram->diagonal()[l]);
        MassMove<1> move(force, bend(grows, shrinks, diagonal),
                         {{.from = mass[shrinks], .to = mass[grows], .least = least}});
        const double amount = move.solve(imbalance, 1e-3 * imbalance);
        if (!(amount > 0.0)) return false;
        dual_.set_mass(l, grows, move.after(0).to);
        dual_.set_mass(l, shrinks, move.after(0).from);
        change_[grows] -= amount;
        change_[shrinks] += amount;
        for (std::size_t y = dual_.first_row(); y < classes_; ++y)
            score_[y] += diagonal * amount * (dual_.label_kernel(shrinks, y) - dual_.label_kernel(grows, y));
        score_[grows] -= stiffness(grows) * amount;
        score_[shrinks] += stiffness(shrinks) * amount;
        return true;
    }

    double stiffness(std::size_t y) const { return y < dual_.first_row() ? 0.0 : kappa_; }

    // 2 a in his (9).
    double bend(std::size_t y, std::size_t z, double diagonal) const {
        const double own = dual_.label_kernel(y, y) + dual_.label_kernel(z, z);
        const double cross = dual_.label_kernel(y, z) + dual_.label_kernel(z, y);
        return checked_bend<T>(diagonal * (own - cross), top_diagonal_ * std::abs(own),
                               problem_.noise * std::abs(own)) +
               stiffness(y) + stiffness(z);
    }

    const KernelProblem<T>& problem_;
    const StopRule& rule_;
    const SmoSettings& settings_;
    ThreadTeam& team_;
    const Report& report_;
    const std::size_t n_, classes_;
    const double top_diagonal_;
    SoftmaxDual<T> dual_;
    std::vector<double> multipliers_, offsets_;  // by class: b; b + kappa sum_i B_i
    std::vector<double> score_, change_;         // of the point that is visited, by class
    DualMeasure best_;
    std::vector<double> certified_, certified_bias_;  // what best_ belongs to
    Clock clock_;
    std::size_t n_rows_ = 0;
    double kappa_ = 0.0, last_report_ = 0.0, quiet_gap_ = std::numeric_limits<double>::infinity();
    double floor_ = 1e3 * std::numeric_limits<double>::epsilon();  // of p, as in Keerthi et al., section 5
    bool quiet_ = false, lost_ = false;
};

}  // namespace

template <class T>
KernelSolution solve_smo_multiclass(const KernelProblem<T>& problem, const KernelStart& start, const StopRule& rule,
                                    const SmoSettings& settings, ThreadTeam& team, const Report& report) {
    return MulticlassSmo<T>(problem, rule, settings, team, report).solve(start);
}

template KernelSolution solve_smo_multiclass(const KernelProblem<float>&, const KernelStart&, const StopRule&,
                                             const SmoSettings&, ThreadTeam&, const Report&);
template KernelSolution solve_smo_multiclass(const KernelProblem<double>&, const KernelStart&, const StopRule&,
                                             const SmoSettings&, ThreadTeam&, const Report&);

}  // namespace dualfield
