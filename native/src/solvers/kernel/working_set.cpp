// Dual ascent on greedy working sets for kernel logistic regression.
//
// The points with the largest shares of the duality gap, c_i KL(p_i || softmax(F_i + b)), form a working set; half of
// the previous set stays, because a set solved alone is undone by the next one. On the set the dual is raised point by
// point, each point solved whole (softmax_blocks.hpp); one product with the rows of the set then brings all scores, and
// with them the exact gap, up to date.
//
// With a bias the coefficients must sum to zero, which single points cannot keep: there the set is a small problem of
// the same kind, with scores that come from outside and a sum that is given, and Newton's method solves it
// (newton_cg.cpp). The same is done without a bias where the passes over a set do not end.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "dual_point.hpp"
#include "dualfield/objectives/kernel_problem.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

namespace {

template <class T>
class WorkingSet : DualPoint<T> {
  public:
    WorkingSet(const KernelProblem<T>& problem, const StopRule& rule, const WorkingSetSettings& settings,
               ThreadTeam& team, const Report& report)
        : DualPoint<T>(problem, team),
          rule_(rule),
          settings_(settings),
          report_(report),
          width_(padded_to_panels<T>(2 * problem.n_classes) / 2) {
        const double top = checked_diagonal(gram_.diagonal(), problem.noise);
        // A set is solved in double precision, with values that may have been rounded to less.
        set_noise_ = problem.noise + (sizeof(T) == 4 ? top * double(std::numeric_limits<T>::epsilon()) : 0.0);
        size_ = std::min({settings.size, gram_.most_rows(), n_});
        if (n_ < 4 * size_) size_ = std::max<std::size_t>(std::min<std::size_t>(n_, 16), n_ / 4);
        set_up_block();
    }

    KernelSolution solve(const KernelStart& start) {
        if (start.coefficients.empty())
            start_from_priors();
        else
            start_from(start);
        settle_bias(12);
        KernelSolution solution;
        bool fresh = true;  // scores are a product, not the sum of many updates, and the coefficients sum to zero
        double pace_work = work(), pace_gap = sums_.gap;
        int slow = 0;
        double best = std::numeric_limits<double>::infinity(), best_passes = passes_;
        for (;; ++solution.n_iterations) {
            const double dual = sums_.entropy - 0.5 * sums_.alignment;
            const bool go_on = report_({dual + sums_.gap, dual, sums_.gap, passes_, clock_.seconds()});
            const double relative = relative_gap();
            // A little early: the last digit of single precision is not to be trusted.
            const bool reached = relative <= (sizeof(T) == 4 ? 0.97 : 1.0) * rule_.tolerance * (fresh ? 1.0 : 0.98);
            if (reached && fresh) {
                solution.outcome = Outcome::converged;
                break;
            }
            if (relative < 0.9 * best) {
                best = relative;
                best_passes = passes_;
            }
            // Rounding: the gap has not fallen for a long time.
            const bool stalled = passes_ > best_passes + kStalled || is_lost();
            if (!go_on || passes_ >= rule_.most_passes || slow >= 2 || stalled) {
                solution.outcome = !go_on      ? Outcome::interrupted
                                   : slow >= 2 ? Outcome::too_slow
                                   : stalled   ? Outcome::stalled
                                               : Outcome::iteration_limit;
                if (!fresh && gram_.most_rows() == n_) refresh();
                break;
            }
            if (reached) {
                refresh();
                fresh = true;
                continue;
            }
            if (work() - pace_work >= 3.0) {
                const double rate = std::log(pace_gap / sums_.gap) / (work() - pace_work);
                const double expected =
                    rate > 0.0 ? std::log(relative / rule_.tolerance) / rate : settings_.patience * 2;
                slow = expected > settings_.patience && work() > settings_.patience / 10 ? slow + 1 : 0;
                pace_work = work();
                pace_gap = sums_.gap;
            }
            choose();
            ascend();
            fresh = false;
        }
        finish(solution);
        return solution;
    }

  private:
    using DualPoint<T>::begin_sums;
    using DualPoint<T>::bias_;
    using DualPoint<T>::classes_;
    using DualPoint<T>::coefficient;
    using DualPoint<T>::columns;
    using DualPoint<T>::curvature_passes_;
    using DualPoint<T>::end_sums;
    using DualPoint<T>::finish;
    using DualPoint<T>::first_;
    using DualPoint<T>::gram_;
    using DualPoint<T>::imbalance_;
    using DualPoint<T>::log_p_;
    using DualPoint<T>::n_;
    using DualPoint<T>::native_;
    using DualPoint<T>::p_;
    using DualPoint<T>::passes_;
    using DualPoint<T>::problem_;
    using DualPoint<T>::refresh;
    using DualPoint<T>::relative_gap;
    using DualPoint<T>::scores_;
    using DualPoint<T>::settle_bias;
    using DualPoint<T>::start_from;
    using DualPoint<T>::start_from_priors;
    using DualPoint<T>::step_bias;
    using DualPoint<T>::stride_;
    using DualPoint<T>::sum_chunk;
    using DualPoint<T>::sums_;
    using DualPoint<T>::team_;
    using DualPoint<T>::terms_;
    using DualPoint<T>::update_curvature;
    using DualPoint<T>::weight;

    static constexpr double kStalled = sizeof(T) == 4 ? 60.0 : 1000.0;  // passes
    static constexpr double kMostSetPasses = 6400.0;
    static constexpr std::size_t kBefore = 6;  // passes over a set before Newton's method

    // Twice as many sets as hold all points gained nothing one after the other, however long they were worked on.
    bool is_lost() const { return set_patience_ >= kMostSetPasses && n_failed_ * size_ > 2 * n_ + 8 * size_; }

    // Work in units of a pass, with the time inside the sets.
    double work() const {
        const double visit = static_cast<double>(width_) * (static_cast<double>(size_) + 100.0);
        const double rows = static_cast<double>(problem_.n_rows()), n = static_cast<double>(n_);
        const double share = static_cast<double>(size_) / n;
        return passes_ + inner_visits_ * visit / (n * n * rows) + set_passes_ * share * share;
    }

    void set_up_block() {
        own_.assign(width_, T(0));
        present_.assign(width_, T(0));
        for (std::size_t c = 0; c < classes_; ++c) {
            present_[c] = T(1);
            own_[c] = c >= first_ ? T(1) : T(0);
        }
        set_.reserve(size_);
        row_pointers_.resize(size_);
        kernel_stride_ = padded_to_panels<T>(size_);
        block_kernel_ = Aligned<T>(checked_product(size_, kernel_stride_));
        block_scores_ = Aligned<T>(checked_product(size_, width_));
        block_log_p_ = Aligned<T>(checked_product(size_, width_));
        block_p_ = Aligned<T>(checked_product(size_, width_));
        block_old_ = Aligned<T>(checked_product(size_, width_));
        scratch_ = Aligned<T>(checked_product(size_ + 16, width_), T(0));
        block_weights_.resize(size_);
        block_labels_.resize(size_);
        changes_ = Aligned<T>(checked_product(size_, classes_));
        marked_.assign(n_, 0);
    }

    // The working set: the largest terms of the previous set, then the largest of the others.
    void choose() {
        const auto larger = [&](std::int32_t a, std::int32_t b) {
            const T ta = terms_[static_cast<std::size_t>(a)], tb = terms_[static_cast<std::size_t>(b)];
            return ta != tb ? ta > tb : a < b;
        };
        std::size_t kept = 0;
        if (failed_) {
            for (const std::int32_t i : set_) terms_[static_cast<std::size_t>(i)] = T(0);
            set_.clear();
        }
        if (!set_.empty()) {
            kept = static_cast<std::size_t>(settings_.keep * static_cast<double>(size_));
            if (kept > 0)
                std::nth_element(set_.begin(), set_.begin() + static_cast<std::ptrdiff_t>(kept - 1), set_.end(),
                                 larger);
            set_.resize(kept);
        }
        for (const std::int32_t i : set_) marked_[static_cast<std::size_t>(i)] = 1;
        candidates_.clear();
        for (std::size_t i = 0; i < n_; ++i)
            if (!marked_[i]) candidates_.push_back(static_cast<std::int32_t>(i));
        const std::size_t wanted = std::min(size_ - kept, candidates_.size());
        if (wanted > 0)
            std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(wanted - 1),
                             candidates_.end(), larger);
        for (const std::int32_t i : set_) marked_[static_cast<std::size_t>(i)] = 0;
        set_.insert(set_.end(), candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(wanted));
        std::sort(set_.begin(), set_.end());
    }

    void ascend() {
        gram_.rows(set_, row_pointers_.data(), team_);
        gather();
        BlockRows<T> block{.n = set_.size(),
                           .n_classes = classes_,
                           .width = width_,
                           .kernel_stride = kernel_stride_,
                           .kernel = block_kernel_.data(),
                           .scores = block_scores_.data(),
                           .log_p = block_log_p_.data(),
                           .p = block_p_.data(),
                           .weights = block_weights_.data(),
                           .own = own_.data(),
                           .present = present_.data(),
                           .labels = block_labels_.data(),
                           .scratch = scratch_.data()};
        if (problem_.with_bias || stiff_ >= 3) {
            raise_points(block, kBefore);
            solve_set();
        } else {
            raise_points(block, settings_.most_inner);
        }
        inner_visits_ += static_cast<double>(block.n_visits);
        scatter();
        begin_sums();
        const DualColumns<T> in = columns();
        const std::size_t rows = problem_.n_rows();
        gram_.add_product(std::span<const T* const>(row_pointers_.data(), set_.size()), changes_.data(), rows, rows,
                          scores_.data() + first_ * stride_, stride_, team_,
                          [&](std::size_t, std::size_t chunk, std::size_t first, std::size_t last) {
                              sum_chunk(in, chunk, first, last);
                          });
        end_sums();
        passes_ += static_cast<double>(set_.size()) / static_cast<double>(n_);
        if (problem_.with_bias) {
            if (passes_ - curvature_passes_ > 0.25) update_curvature();
            step_bias();
        }
    }

    void gather() {
        const std::size_t n = set_.size();
        constexpr std::size_t kRows = 16;
        team_.run((n + kRows - 1) / kRows, [&](std::size_t, std::size_t task) {
            for (std::size_t a = task * kRows; a < std::min(n, (task + 1) * kRows); ++a) {
                const T* row = row_pointers_[a];
                T* target = block_kernel_.data() + a * kernel_stride_;
                for (std::size_t b = 0; b < n; ++b) target[b] = row[set_[b]];
                const auto i = static_cast<std::size_t>(set_[a]);
                block_weights_[a] = problem_.weights[i];
                block_labels_[a] = problem_.labels[i];
                for (std::size_t c = 0; c < width_; ++c) {
                    const bool real = c < classes_;
                    block_scores_[a * width_ + c] =
                        real ? scores_[c * stride_ + i] + static_cast<T>(bias_[c]) : kLogFloor<T>;
                    block_log_p_[a * width_ + c] = real ? log_p_[c * stride_ + i] : kLogFloor<T>;
                    block_p_[a * width_ + c] = real ? p_[c * stride_ + i] : T(0);
                }
            }
        });
        std::copy_n(block_p_.data(), n * width_, block_old_.data());
    }

    // Cyclic passes over the set, each point solved whole.
    void raise_points(BlockRows<T>& block, std::size_t most_passes) {
        double first_gain = 0.0, skip = 0.0;
        for (std::size_t pass = 0; pass < most_passes; ++pass) {
            const std::size_t before = block.n_visits;
            const double gain = native_.block_pass(block, skip);
            if (pass == 0) {
                first_gain = gain;
                skip = 0.5 * settings_.inner_tolerance * gain / static_cast<double>(block.n);
            } else if (gain < settings_.inner_tolerance * first_gain || block.n_visits == before) {
                stiff_ = 0;
                return;
            }
        }
        ++stiff_;
    }

    // The set as a problem of its own, from where the passes left it, in double precision: with a large C the gains are
    // small differences of large numbers. Its dual is sum c H(p) - <B, F> + 1/2 <B, K B>, up to a constant.
    void solve_set() {
        const std::size_t n = set_.size(), rows = problem_.n_rows(), stride = padded_to_panels<double>(n);
        set_kernel_.resize(n * n);
        for (std::size_t a = 0; a < n; ++a)
            std::copy_n(block_kernel_.data() + a * kernel_stride_, n, set_kernel_.data() + a * n);
        BorrowedGram<double> gram(set_kernel_.data(), n, n);
        std::unique_ptr<BorrowedGram<T>> same;
        Gram<float>* rough = nullptr;
        if constexpr (sizeof(T) == sizeof(float)) {
            same = std::make_unique<BorrowedGram<T>>(block_kernel_.data(), n, kernel_stride_);
            rough = same.get();
        }
        const std::vector<double> weights(block_weights_.begin(),
                                          block_weights_.begin() + static_cast<std::ptrdiff_t>(n));
        std::vector<double> coefficients(n * rows), old(n * rows), changes(n * rows), sums(rows, 0.0), bias(rows);
        Aligned<double> own(rows * stride, 0.0), scores(rows * stride, 0.0);
        double dual = 0.0, square = 0.0;
        for (std::size_t a = 0; a < n; ++a) {
            const auto i = static_cast<std::size_t>(set_[a]);
            for (std::size_t c = 0; c < classes_; ++c)
                dual -=
                    weight(i) * static_cast<double>(p_[c * stride_ + i]) * static_cast<double>(log_p_[c * stride_ + i]);
            for (std::size_t r = 0; r < rows; ++r) {
                const std::size_t c = r + first_, at = a * rows + r;
                old[at] = coefficient(i, c, [&](std::size_t k) { return block_old_[a * width_ + k]; });
                coefficients[at] = coefficient(i, c, [&](std::size_t k) { return block_p_[a * width_ + k]; });
                changes[at] = coefficients[at] - old[at];
                sums[r] += old[at];
                dual -= old[at] * static_cast<double>(scores_[c * stride_ + i]);
            }
        }
        gram.product(old.data(), rows, own.data(), stride, alone_);
        gram.product(changes.data(), rows, scores.data(), stride, alone_);
        for (std::size_t r = 0; r < rows; ++r) {
            sums[r] -= imbalance_[r + first_];
            bias[r] = bias_[r + first_];
            for (std::size_t a = 0; a < n; ++a) {
                const std::size_t at = r * stride + a;
                square += changes[a * rows + r] * (2.0 * own[at] + scores[at]);
                scores[at] += static_cast<double>(scores_[(r + first_) * stride_ + static_cast<std::size_t>(set_[a])]);
            }
        }
        const KernelProblem<double> part{.gram = &gram,
                                         .n_classes = classes_,
                                         .pinned = problem_.pinned,
                                         .with_bias = problem_.with_bias,
                                         .labels = std::span(block_labels_).first(n),
                                         .weights = weights,
                                         .rough = rough,
                                         .noise = set_noise_,
                                         .scores = scores.data(),
                                         .sums = problem_.with_bias ? sums.data() : nullptr};
        const KernelSolution solution = solve_part(part, KernelStart{coefficients, bias, square}, dual);
        set_passes_ += solution.passes;
        failed_ = !(solution.objective - solution.gap > dual);
        // A large C needs many products; the others never make use of them.
        if (failed_) set_patience_ = std::min(2.0 * set_patience_, kMostSetPasses);
        n_failed_ = failed_ ? n_failed_ + 1 : 0;
        if (failed_) {  // rounding: nothing is gained, so nothing is changed, and the next set is another one
            std::copy_n(block_old_.data(), n * width_, block_p_.data());
            for (std::size_t a = 0; a < n; ++a)
                for (std::size_t c = 0; c < classes_; ++c)
                    block_log_p_[a * width_ + c] = log_p_[c * stride_ + static_cast<std::size_t>(set_[a])];
            return;
        }
        for (std::size_t a = 0; a < n; ++a) {
            double top = first_ ? 0.0 : -1e300, total = 0.0;
            for (std::size_t r = 0; r < rows; ++r) top = std::max(top, solution.scores[r * n + a]);
            const auto score = [&](std::size_t c) { return c < first_ ? 0.0 : solution.scores[(c - first_) * n + a]; };
            for (std::size_t c = 0; c < classes_; ++c) total += std::exp(score(c) - top);
            for (std::size_t c = 0; c < classes_; ++c) {
                const double log_p = score(c) - top - std::log(total);
                block_log_p_[a * width_ + c] = std::max(static_cast<T>(log_p), kLogFloor<T>);
                block_p_[a * width_ + c] = static_cast<T>(std::exp(log_p));
            }
        }
    }

    // dual: the value to rise above.
    KernelSolution solve_part(const KernelProblem<double>& part, const KernelStart& start, double dual) {
        const StopRule rule{
            .tolerance = 0.0, .most_passes = set_patience_, .share = settings_.set_tolerance, .dual_before = dual};
        try {
            return solve_newton(part, start, rule, NewtonSettings{settings_.set_forcing}, alone_,
                                [](const Progress&) { return true; });
        } catch (const NotPositive& error) {  // of values that were rounded, it proves nothing
            if (sizeof(T) == 4) throw SinglePrecision(error.what());
            throw;
        }
    }

    void scatter() {
        const std::size_t rows = problem_.n_rows();
        for (std::size_t a = 0; a < set_.size(); ++a) {
            const auto i = static_cast<std::size_t>(set_[a]);
            const T *next = block_p_.data() + a * width_, *old = block_old_.data() + a * width_;
            for (std::size_t c = 0; c < classes_; ++c) {
                const double change = coefficient(i, c, [&](std::size_t k) { return next[k]; }) -
                                      coefficient(i, c, [&](std::size_t k) { return old[k]; });
                if (c >= first_) changes_[a * rows + c - first_] = static_cast<T>(change);
                imbalance_[c] += change;
                p_[c * stride_ + i] = next[c];
                log_p_[c * stride_ + i] = block_log_p_[a * width_ + c];
            }
        }
    }

    const StopRule& rule_;
    const WorkingSetSettings& settings_;
    const Report& report_;
    const std::size_t width_;
    std::size_t size_ = 0, kernel_stride_ = 0;
    int stiff_ = 0;             // sets in a row whose passes did not end
    bool failed_ = false;       // the last set gained nothing
    std::size_t n_failed_ = 0;  // so many in a row
    std::vector<double> set_kernel_;
    double set_noise_ = 0.0, set_patience_ = 200.0;
    double set_passes_ = 0.0;  // products inside the sets
    ThreadTeam alone_{1};
    Clock clock_;
    double inner_visits_ = 0.0;
    std::vector<T> own_, present_;
    std::vector<std::int32_t> set_, candidates_;
    std::vector<char> marked_;
    std::vector<const T*> row_pointers_;
    Aligned<T> block_kernel_, block_scores_, block_log_p_, block_p_, block_old_, scratch_, changes_;
    std::vector<T> block_weights_;
    std::vector<std::int32_t> block_labels_;
};

}  // namespace

template <class T>
KernelSolution solve_working_set(const KernelProblem<T>& problem, const KernelStart& start, const StopRule& rule,
                                 const WorkingSetSettings& settings, ThreadTeam& team, const Report& report) {
    return WorkingSet<T>(problem, rule, settings, team, report).solve(start);
}

template KernelSolution solve_working_set(const KernelProblem<float>&, const KernelStart&, const StopRule&,
                                          const WorkingSetSettings&, ThreadTeam&, const Report&);
template KernelSolution solve_working_set(const KernelProblem<double>&, const KernelStart&, const StopRule&,
                                          const WorkingSetSettings&, ThreadTeam&, const Report&);

}  // namespace dualfield
