// Sequential minimal optimisation for binary kernel logistic regression (Keerthi, Duan, Shevade, Poo 2005).
//
// At the optimum H_i = F_i - logit p_i is the same for all points (their 3.5). A step takes u from the coefficient
// where H is highest and gives it to the one where H is lowest (section 4), with u solved for exactly. Without bias,
// one coefficient moves: the one whose |H_i| is largest (section 7 has the smallest, a misprint).
//
// Their two groups of indices near the boundary (section 5) are replaced by a closed box: a point at its end is no
// candidate in that direction, and the box is widened where it is what keeps the gap too large.
#include "binary_dual.hpp"
#include "mass_move.hpp"

namespace dualfield {

namespace {

template <class T>
class BinarySmo {
  public:
    BinarySmo(const KernelProblem<T>& problem, const StopRule& rule, const SmoSettings& settings, ThreadTeam& team,
              const Report& report)
        : problem_(problem),
          rule_(rule),
          settings_(settings),
          team_(team),
          report_(report),
          native_(routines().kernel<T>()),
          n_(problem.size()),
          review_(std::max(50.0, 5e4 / static_cast<double>(n_))),
          second_order_(settings.partner == SmoSettings::Partner::second_order && problem.with_bias),
          dual_(problem, first_floor(), second_order_, team),
          extremes_((n_ + kPiece - 1) / kPiece),
          choices_(extremes_.size()) {}

    KernelSolution solve(const KernelStart& start) {
        dual_.begin(start);
        scan(nullptr, nullptr, 0.0);
        KernelSolution solution;
        solution.outcome = run(solution.n_iterations);
        solution.objective = dual_.dual() + dual_.gap();
        solution.gap = dual_.gap();
        solution.passes = passes();
        solution.bias = {dual_.bias()};
        solution.coefficients = dual_.coefficients();
        return solution;
    }

  private:
    static constexpr std::size_t kPiece = 16384;  // columns that one thread takes

    // With the box of the paper and large C, pairs of largest violation spend most steps on points whose p is next to
    // nothing and whose H is far off all the same; a narrow box that is widened later saves most of them. The rule of
    // the paper for stopping is about the box of the paper.
    double first_floor() const {
        const bool narrow = problem_.with_bias && !second_order_ && settings_.tau <= 0.0;
        return narrow ? 1e-5 : BinaryDual<T>::kPaperFloor;
    }

    double passes() const { return dual_.n_products() + static_cast<double>(n_rows_) / static_cast<double>(n_); }
    double highest() const { return found_.up < 0 ? 0.0 : static_cast<double>(found_.highest); }
    double lowest() const { return found_.low < 0 ? 0.0 : static_cast<double>(found_.lowest); }

    // H += step (row_low - row_up) and the extremes of H, in one go.
    void scan(const T* row_up, const T* row_low, double step) {
        const SmoScan<T> in{.pull = dual_.pulls(),
                            .row_up = row_up,
                            .row_low = row_low,
                            .step = static_cast<T>(step),
                            .held = dual_.held()};
        team_.run(extremes_.size(), [&](std::size_t, std::size_t piece) {
            native_.smo_scan(in, piece * kPiece, std::min(n_, (piece + 1) * kPiece), extremes_[piece]);
        });
        found_ = extremes_[0];
        for (const SmoExtremes<T>& other : extremes_) {
            if (other.highest > found_.highest) found_.highest = other.highest, found_.up = other.up;
            if (other.lowest < found_.lowest) found_.lowest = other.lowest, found_.low = other.low;
        }
    }

    // b_up - b_low, or the largest |H| where there is no bias.
    double violation() const {
        if (!problem_.with_bias) return std::max({0.0, highest(), -lowest()});
        return found_.up < 0 || found_.low < 0 ? 0.0 : highest() - lowest();
    }
    bool is_narrow() const { return settings_.tau > 0.0 && problem_.with_bias && violation() <= 2.0 * settings_.tau; }
    // KL(p || p') <= d^2 / 8 where logits differ by d: what is left of the gap then is rounding, or the box.
    bool free_points_are_done() const {
        const double d = violation(), size = std::max({1.0, std::abs(highest()), std::abs(lowest())});
        return d <= 4.0 * static_cast<double>(std::numeric_limits<T>::epsilon()) * size ||
               dual_.mass() * d * d / 8.0 <= 0.1 * rule_.tolerance * dual_.dual();
    }
    bool reached() const { return dual_.dual() > 0.0 && dual_.gap() <= rule_.tolerance * dual_.dual(); }

    Outcome run(std::size_t& iteration) {
        const double between = std::max(static_cast<double>(n_) / 4.0, 50.0);
        double next_check = 0.0;
        bool moved = true;
        next_review_ = passes() + review_;
        for (;; ++iteration) {
            const bool settled = !moved || free_points_are_done(), narrow = is_narrow();
            const bool spent = passes() >= rule_.most_passes;
            const bool is_due = settled || narrow || spent || static_cast<double>(iteration) >= next_check;
            if (is_due) {
                dual_.estimate(rule_.tolerance);
                if (settled || narrow || spent || reached()) verify();
            }
            // Progress that is due is reported as it is known: the clock has no say in what is computed.
            if (is_due || is_late()) {
                const double now = last_report_ = clock_.seconds();
                if (!report_({dual_.dual() + dual_.gap(), dual_.dual(), dual_.gap(), passes(), now})) {
                    dual_.measure();
                    return reached() ? Outcome::converged : Outcome::interrupted;
                }
            }
            if (is_due) {
                if (reached() || (narrow && is_narrow())) return Outcome::converged;
                if (spent) return Outcome::iteration_limit;
                if (is_stuck() || !go_on(settled)) return Outcome::stalled;
                next_check = static_cast<double>(iteration) + between;
            }
            moved = problem_.with_bias ? pair_step() : single_step();
        }
    }

    // The gap of this very point; scores are computed anew if they are rounded.
    void verify() {
        if (sizeof(T) == sizeof(float)) {
            dual_.refresh();
            scan(nullptr, nullptr, 0.0);
        }
        dual_.measure();
    }

    bool is_late() {
        work_ += n_;
        if (work_ < 200000) return false;
        work_ = 0;
        return clock_.seconds() - last_report_ > 0.2;
    }

    // Widens the box where it is in the way; false if all points are where they should be and that does not help.
    bool go_on(bool settled) {
        bool widened = dual_.held_gap() > 0.99 * dual_.gap() && dual_.widen();
        if (!widened && settled) {
            if (dual_.gap() < 0.5 * settled_gap_) {
                settled_gap_ = dual_.gap();
                return true;
            }
            widened = dual_.widen();
            if (!widened) return false;
        }
        if (widened) scan(nullptr, nullptr, 0.0);
        return true;
    }

    // Every step raises the dual; where rounding undoes that for long, there is nothing to wait for.
    bool is_stuck() {
        if (passes() < next_review_) return false;
        verify();
        next_review_ = passes() + review_;
        if (dual_.dual() > best_dual_ + 1e-3 * dual_.gap()) {
            best_dual_ = dual_.dual();
            n_idle_reviews_ = 0;
        }
        return ++n_idle_reviews_ > 3;
    }

    struct Pair {
        std::int32_t up = -1, low = -1;
        double moved = 0.0, gain = 0.0;
        MassEnd up_end{}, low_end{};
    };

    // Mass from q_up and p_low to p_up and q_low: B_up falls, B_low rises, their sum stays (3.8 to 3.10, 4.3).
    Pair try_pair(std::int32_t up, std::int32_t low, T entry) const {
        const auto i = static_cast<std::size_t>(up), j = static_cast<std::size_t>(low);
        const double sum = dual_.diagonal(i) + dual_.diagonal(j);
        MassMove<2> move(dual_.score(i) - dual_.score(j),
                         checked_bend<T>(sum - 2.0 * static_cast<double>(entry), sum, problem_.noise),
                         {{.from = dual_.q(i), .to = dual_.p(i), .least = dual_.least(i)},
                          {.from = dual_.p(j), .to = dual_.q(j), .least = dual_.least(j)}});
        const double imbalance = dual_.pull(i) - dual_.pull(j);
        Pair pair{.up = up, .low = low, .moved = move.solve(imbalance, enough(imbalance))};
        if (!(pair.moved > 0.0)) return pair;
        pair.up_end = move.after(0);
        pair.low_end = move.after(1);
        if (second_order_) pair.gain = move.gain(imbalance);
        return pair;
    }

    // How exactly a step is solved for: section 5 has 0.1 tau (of the absolute value).
    double enough(double imbalance) const {
        const double relative = 1e-3 * imbalance;
        return settings_.tau > 0.0 ? std::min(relative, 0.1 * settings_.tau) : relative;
    }

    bool pair_step() {
        if (!(violation() > 0.0)) return false;
        const std::int32_t wanted[2] = {found_.up, found_.low};
        const T* rows[2];
        problem_.gram->rows(wanted, rows, team_);
        n_rows_ += 2;
        Pair pair = try_pair(wanted[0], wanted[1], rows[0][wanted[1]]);
        if (second_order_) {
            const SmoChoice<T> choice = partners(rows);
            for (const Pair& other : {choice.low < 0 ? Pair{} : try_pair(found_.up, choice.low, rows[0][choice.low]),
                                      choice.up < 0 ? Pair{} : try_pair(choice.up, found_.low, rows[1][choice.up])})
                if (other.moved > 0.0 && other.gain > pair.gain) pair = other;
            if (pair.up != found_.up || pair.low != found_.low) {
                const std::int32_t chosen[2] = {pair.up, pair.low};
                problem_.gram->rows(chosen, rows, team_);
                n_rows_ += 1;
            }
        }
        if (!(pair.moved > 0.0)) return false;
        dual_.replace(static_cast<std::size_t>(pair.up), pair.up_end.to, pair.up_end.from);
        dual_.replace(static_cast<std::size_t>(pair.low), pair.low_end.from, pair.low_end.to);
        scan(rows[0], rows[1], pair.moved);
        return true;
    }

    // Of the pairs with one extreme point, those that promise most by the local curvature.
    SmoChoice<T> partners(const T* const* rows) {
        const SmoPartners<T> in{.pull = dual_.pulls(),
                                .bend = dual_.bends(),
                                .row_up = rows[0],
                                .row_low = rows[1],
                                .highest = found_.highest,
                                .lowest = found_.lowest,
                                .bend_up = dual_.bends()[found_.up],
                                .bend_low = dual_.bends()[found_.low],
                                .held = dual_.held()};
        team_.run(choices_.size(), [&](std::size_t, std::size_t piece) {
            native_.smo_partners(in, piece * kPiece, std::min(n_, (piece + 1) * kPiece), choices_[piece]);
        });
        SmoChoice<T> best = choices_[0];
        for (const SmoChoice<T>& other : choices_) {
            if (other.gain_of_low > best.gain_of_low) best.gain_of_low = other.gain_of_low, best.low = other.low;
            if (other.gain_of_up > best.gain_of_up) best.gain_of_up = other.gain_of_up, best.up = other.up;
        }
        return best;
    }

    bool single_step() {
        const bool grows = found_.up >= 0 && highest() >= -lowest();
        const std::int32_t wanted[1] = {grows ? found_.up : found_.low};
        if (wanted[0] < 0) return false;
        const auto i = static_cast<std::size_t>(wanted[0]);
        const double sign = grows ? 1.0 : -1.0, imbalance = sign * dual_.pull(i);
        MassMove<1> move(sign * dual_.score(i),
                         checked_bend<T>(dual_.diagonal(i), dual_.top_diagonal(), problem_.noise),
                         {{.from = grows ? dual_.q(i) : dual_.p(i),
                           .to = grows ? dual_.p(i) : dual_.q(i),
                           .least = dual_.least(i)}});
        const double moved = move.solve(imbalance, enough(imbalance));
        if (!(moved > 0.0)) return false;
        const MassEnd end = move.after(0);
        const T* rows[1];
        problem_.gram->rows(wanted, rows, team_);
        n_rows_ += 1;
        dual_.replace(i, grows ? end.to : end.from, grows ? end.from : end.to);
        scan(rows[0], nullptr, sign * moved);
        return true;
    }

    const KernelProblem<T>& problem_;
    const StopRule& rule_;
    const SmoSettings& settings_;
    ThreadTeam& team_;
    const Report& report_;
    const KernelRoutines<T>& native_;
    const std::size_t n_;
    const double review_;  // passes between looks at what was gained
    const bool second_order_;
    BinaryDual<T> dual_;
    std::vector<SmoExtremes<T>> extremes_;
    std::vector<SmoChoice<T>> choices_;
    SmoExtremes<T> found_{};
    Clock clock_;
    std::size_t n_rows_ = 0, work_ = 0, n_idle_reviews_ = 0;
    double last_report_ = 0.0, next_review_ = 0.0;
    double settled_gap_ = std::numeric_limits<double>::infinity(), best_dual_ = -settled_gap_;
};

}  // namespace

template <class T>
KernelSolution solve_smo_binary(const KernelProblem<T>& problem, const KernelStart& start, const StopRule& rule,
                                const SmoSettings& settings, ThreadTeam& team, const Report& report) {
    if (problem.n_classes != 2 || !problem.pinned || problem.label_kernel)
        throw std::invalid_argument("two classes, the first of them pinned, and no kernel between them");
    return BinarySmo<T>(problem, rule, settings, team, report).solve(start);
}

template KernelSolution solve_smo_binary(const KernelProblem<float>&, const KernelStart&, const StopRule&,
                                         const SmoSettings&, ThreadTeam&, const Report&);
template KernelSolution solve_smo_binary(const KernelProblem<double>&, const KernelStart&, const StopRule&,
                                         const SmoSettings&, ThreadTeam&, const Report&);

}  // namespace dualfield
