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

#include "dualfield/kernel_problem.hpp"
#include "dualfield/routines.hpp"

namespace dualfield {

namespace {

template <class T>
class WorkingSet {
  public:
    WorkingSet(const KernelProblem<T>& problem, const StopRule& rule, const WorkingSetSettings& settings,
               ThreadTeam& team, const Report& report)
        : problem_(problem),
          rule_(rule),
          settings_(settings),
          team_(team),
          report_(report),
          native_(routines().kernel<T>()),
          gram_(*problem.gram),
          n_(problem.size()),
          classes_(problem.n_classes),
          first_(problem.pinned ? 1 : 0),
          stride_(padded_to_panels<T>(problem.size())),
          width_(padded_to_panels<T>(2 * problem.n_classes) / 2),
          bias_(classes_, 0.0),
          bias_rounded_(classes_, T(0)),
          imbalance_(classes_, 0.0),
          curvature_(classes_ * classes_, 0.0),
          clock_(rule.start_seconds),
          passes_(rule.start_passes) {
        size_ = std::min({settings.size, gram_.most_rows(), n_});
        if (n_ < 4 * size_) size_ = std::max<std::size_t>(std::min<std::size_t>(n_, 16), n_ / 4);
        scores_ = Aligned<T>(classes_ * stride_, T(0));
        log_p_ = Aligned<T>(classes_ * stride_, T(0));
        p_ = Aligned<T>(classes_ * stride_, T(0));
        terms_ = Aligned<T>(stride_, T(0));
        set_up_block();
    }

    KernelSolution solve(const KernelStart& start) {
        for (const T value : problem_.weights) mass_ += static_cast<double>(value);
        if (start.coefficients.empty())
            start_from_priors();
        else
            start_from(start);
        settle_bias(12);
        KernelSolution solution;
        bool fresh = true;  // scores are a product, not the sum of many updates, and the coefficients sum to zero
        double pace_work = work(), pace_gap = sums_.gap;
        int slow = 0;
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
            if (!go_on || passes_ >= rule_.most_passes || slow >= 2) {
                solution.outcome = !go_on      ? Outcome::interrupted
                                   : slow >= 2 ? Outcome::too_slow
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
                slow = expected > settings_.patience && work() > rule_.start_passes + settings_.patience / 10 ? slow + 1
                                                                                                              : 0;
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
    static constexpr std::size_t kBefore = 6;  // passes over a set before Newton's method

    // Work in units of a pass, with the time inside the sets.
    double work() const {
        const double visit = static_cast<double>(width_) * (static_cast<double>(size_) + 100.0);
        const double rows = static_cast<double>(problem_.n_rows()), n = static_cast<double>(n_);
        const double share = static_cast<double>(size_) / n;
        return passes_ + inner_visits_ * visit / (n * n * rows) + set_passes_ * share * share;
    }

    double relative_gap() const {
        const double dual = sums_.entropy - 0.5 * sums_.alignment;
        if (std::isnan(dual) || std::isnan(sums_.gap))
            throw NotPositive(
                "Kernel values overflowed or are not numbers; scale the features or choose another kernel.");
        return dual > 0.0 ? sums_.gap / dual : std::numeric_limits<double>::infinity();
    }

    std::size_t label(std::size_t i) const { return static_cast<std::size_t>(problem_.labels[i]); }
    double weight(std::size_t i) const { return static_cast<double>(problem_.weights[i]); }

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
        block_kernel_ = Aligned<T>(size_ * kernel_stride_);
        block_scores_ = Aligned<T>(size_ * width_);
        block_log_p_ = Aligned<T>(size_ * width_);
        block_p_ = Aligned<T>(size_ * width_);
        block_old_ = Aligned<T>(size_ * width_);
        scratch_ = Aligned<T>((size_ + 16) * width_, T(0));
        block_weights_.resize(size_);
        block_labels_.resize(size_);
        changes_ = Aligned<T>(size_ * classes_);
        marked_.assign(n_, 0);
    }

    // p_i = (1 - eps) D_i + eps prior: feasible, B = eps c (D - prior); eps by a search of the dual along it, which
    // needs one product.
    void start_from_priors() {
        std::vector<double> prior(classes_, 0.0);
        double mass = 0.0;
        for (std::size_t i = 0; i < n_; ++i) {
            prior[label(i)] += weight(i);
            mass += weight(i);
        }
        for (double& value : prior) value /= mass;
        for (std::size_t c = 0; c < classes_; ++c)
            for (std::size_t i = 0; i < n_; ++i) p_[c * stride_ + i] = static_cast<T>(prior[c]);
        multiply();
        double square = 0.0;
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t c = first_; c < classes_; ++c)
                square += weight(i) * ((label(i) == c ? 1.0 : 0.0) - prior[c]) *
                          static_cast<double>(scores_[c * stride_ + i]);
        if (square < 0.0) check_curvature(square);
        double best = -std::numeric_limits<double>::infinity(), scale = 1.0;
        for (double step = -18.0; step <= 0.0; step += 0.25) {
            const double eps = std::exp(step);
            double entropy = 0.0;
            for (std::size_t y = 0; y < classes_; ++y)
                for (std::size_t c = 0; c < classes_; ++c) {
                    const double value = (y == c ? 1.0 - eps : 0.0) + eps * prior[c];
                    if (value > 0.0) entropy -= mass * prior[y] * value * std::log(value);
                }
            const double dual = entropy - 0.5 * eps * eps * square;
            if (dual > best) {
                best = dual;
                scale = eps;
            }
        }
        for (std::size_t c = 0; c < classes_; ++c)
            for (std::size_t i = 0; i < n_; ++i) {
                const double value = (label(i) == c ? 1.0 - scale : 0.0) + scale * prior[c];
                p_[c * stride_ + i] = static_cast<T>(value);
                log_p_[c * stride_ + i] = static_cast<T>(std::log(value));
                scores_[c * stride_ + i] *= static_cast<T>(scale);
            }
        if (problem_.with_bias)
            for (std::size_t c = 0; c < classes_; ++c) bias_[c] = std::log(prior[c] / prior[0]);
    }

    void start_from(const KernelStart& start) {
        const std::size_t rows = problem_.n_rows();
        const double smallest = std::exp(static_cast<double>(kLogFloor<T>) / 2);
        for (std::size_t i = 0; i < n_; ++i) {
            double total = 0.0;
            std::vector<double> p(classes_);
            double rest = 1.0;
            for (std::size_t c = first_; c < classes_; ++c) {
                p[c] = (label(i) == c ? 1.0 : 0.0) - start.coefficients[i * rows + c - first_] / weight(i);
                rest -= p[c];
            }
            if (first_) p[0] = rest;
            for (double& value : p) total += value = std::clamp(value, smallest, 1.0);
            for (std::size_t c = 0; c < classes_; ++c) {
                p_[c * stride_ + i] = static_cast<T>(p[c] / total);
                log_p_[c * stride_ + i] = static_cast<T>(std::log(p[c] / total));
            }
        }
        if (problem_.with_bias) balance();
        multiply();
        for (std::size_t c = first_; problem_.with_bias && c < classes_; ++c)
            bias_[c] = start.bias[c - first_] - (first_ ? 0.0 : start.bias[0]);
    }

    // B_i = c_i (D_i - p_i) for class c, the label's as the sum of the others: no difference of nearly equal numbers.
    template <class P>
    double coefficient(std::size_t i, std::size_t c, const P& p) const {
        if (c != label(i)) return -weight(i) * static_cast<double>(p(c));
        double others = 0.0;
        for (std::size_t other = 0; other < classes_; ++other)
            if (other != c) others += static_cast<double>(p(other));
        return weight(i) * others;
    }

    // scores = K B.
    void multiply() {
        const std::size_t rows = problem_.n_rows();
        Aligned<T> coefficients(n_ * rows);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t c = first_; c < classes_; ++c)
                coefficients[i * rows + c - first_] =
                    static_cast<T>(coefficient(i, c, [&](std::size_t k) { return p_[k * stride_ + i]; }));
        gram_.product(coefficients.data(), rows, scores_.data() + first_ * stride_, stride_, team_);
        passes_ += 1.0;
        if (problem_.with_bias) sum_imbalance();
    }

    void sum_imbalance() {
        std::fill(imbalance_.begin(), imbalance_.end(), 0.0);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t c = 0; c < classes_; ++c)
                imbalance_[c] += coefficient(i, c, [&](std::size_t k) { return p_[k * stride_ + i]; });
    }

    // Tilts all p_i so that the coefficients sum to zero, in double precision (iterative proportional fitting, sped up
    // by Newton's method).
    void balance() {
        for (int round = 0; round < 60; ++round) {
            sum_imbalance();
            double worst = 0.0;
            for (const double value : imbalance_) worst = std::max(worst, std::abs(value));
            if (worst <= mass_ * (sizeof(T) == 4 ? 1e-7 : 1e-14)) return;
            update_curvature();
            std::vector<double> step = imbalance_;
            solve_curvature(classes_, true, curvature_, step.data());
            for (double& value : step) value = std::clamp(value, -2.0, 2.0);
            for (std::size_t i = 0; i < n_; ++i) {
                double total = 0.0;
                for (std::size_t c = 0; c < classes_; ++c)
                    total += static_cast<double>(p_[c * stride_ + i]) * std::exp(step[c]);
                for (std::size_t c = 0; c < classes_; ++c) {
                    const double log_p = static_cast<double>(log_p_[c * stride_ + i]) + step[c] - std::log(total);
                    log_p_[c * stride_ + i] = static_cast<T>(std::max(log_p, static_cast<double>(kLogFloor<T>)));
                    p_[c * stride_ + i] = static_cast<T>(std::exp(log_p));
                }
            }
        }
    }

    void refresh() {
        if (problem_.with_bias) balance();
        multiply();
        settle_bias(6);
    }

    // The gap at the present scores, with the best bias.
    void settle_bias(int rounds) {
        evaluate();
        if (!problem_.with_bias) return;
        update_curvature();
        for (int round = 0; round < rounds && step_bias(); ++round) evaluate();
    }

    DualColumns<T> columns() {
        for (std::size_t c = 0; c < classes_; ++c) bias_rounded_[c] = static_cast<T>(bias_[c]);
        return {.n_classes = classes_,
                .stride = stride_,
                .scores = scores_.data(),
                .log_p = log_p_.data(),
                .p = p_.data(),
                .weights = problem_.weights.data(),
                .bias = bias_rounded_.data(),
                .labels = problem_.labels.data(),
                .terms = terms_.data()};
    }

    // The gap and its terms at the present point; partial sums by chunk, added in order, whoever computed them.
    void evaluate() {
        begin_sums();
        const DualColumns<T> in = columns();
        team_.run(gram_.n_chunks(), [&](std::size_t, std::size_t chunk) {
            sum_chunk(in, chunk, chunk * Gram<T>::kChunk, std::min(n_, (chunk + 1) * Gram<T>::kChunk));
        });
        end_sums();
    }

    void begin_sums() { partial_.assign(gram_.n_chunks() * (classes_ + 3), 0.0); }

    void sum_chunk(const DualColumns<T>& in, std::size_t chunk, std::size_t first, std::size_t last) {
        double* target = partial_.data() + chunk * (classes_ + 3);
        DualSums sums{.shifts = problem_.with_bias ? target + 3 : nullptr};
        native_.dual_terms(in, first, last, sums);
        target[0] = sums.gap;
        target[1] = sums.entropy;
        target[2] = sums.alignment;
    }

    void end_sums() {
        sums_ = {};
        shifts_.assign(classes_, 0.0);
        for (std::size_t chunk = 0; chunk < gram_.n_chunks(); ++chunk) {
            const double* part = partial_.data() + chunk * (classes_ + 3);
            sums_.gap += part[0];
            sums_.entropy += part[1];
            sums_.alignment += part[2];
            for (std::size_t c = 0; c < classes_; ++c) shifts_[c] += part[3 + c];
        }
        check_curvature(sums_.alignment);
    }

    // alignment = <B, K B>.
    void check_curvature(double alignment) const {
        if (alignment < -1e-4 * std::max(1.0, sums_.entropy))
            throw NotPositive("The kernel is not positive semidefinite: a direction of negative curvature was found.");
    }

    // sum_i c_i (diag p_i - p_i p_i').
    void update_curvature() {
        std::fill(curvature_.begin(), curvature_.end(), 0.0);
        for (std::size_t at = 0; at < n_; at += 512)
            native_.class_moments(p_.data(), problem_.weights.data(), classes_, stride_, at, std::min(n_, at + 512),
                                  curvature_.data());
        for (std::size_t c = 0; c < classes_; ++c) {
            for (std::size_t d = c; d < classes_; ++d)
                curvature_[c * classes_ + d] = curvature_[d * classes_ + c] = -curvature_[c * classes_ + d];
            for (std::size_t i = 0; i < n_; ++i)
                curvature_[c * classes_ + c] += weight(i) * static_cast<double>(p_[c * stride_ + i]);
        }
        curvature_passes_ = passes_;
    }

    // One Newton step towards the best b for the present scores; false once it is there.
    bool step_bias() {
        std::vector<double> step = shifts_;
        solve_curvature(classes_, true, curvature_, step.data());
        double longest = 0.0;
        for (std::size_t c = 0; c < classes_; ++c) longest = std::max(longest, std::abs(step[c] - step[0]));
        const double shorten = longest > 2.0 ? 2.0 / longest : 1.0;
        for (std::size_t c = 0; c < classes_; ++c) bias_[c] -= shorten * (step[c] - step[0]);
        return longest > 1e-5;
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
        for (std::size_t a = 0; a < n; ++a)
            if (block_kernel_[a * kernel_stride_ + a] < T(0))
                throw NotPositive(
                    "The kernel is not positive semidefinite: its value for a point with itself is negative.");
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
                                         .scores = scores.data(),
                                         .sums = problem_.with_bias ? sums.data() : nullptr};
        const StopRule rule{
            .tolerance = 0.0, .most_passes = 200.0, .share = settings_.set_tolerance, .dual_before = dual};
        const KernelSolution solution =
            solve_newton(part, KernelStart{coefficients, bias, square}, rule, NewtonSettings{settings_.set_forcing},
                         alone_, [](const Progress&) { return true; });
        set_passes_ += solution.passes;
        failed_ = !(solution.objective - solution.gap > dual);
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

    void finish(KernelSolution& solution) {
        const std::size_t rows = problem_.n_rows();
        solution.gap = sums_.gap;
        solution.objective = sums_.entropy - 0.5 * sums_.alignment + sums_.gap;
        // Rounded p_i sum to zero up to rounding; the last tilt is in double precision.
        std::vector<double> tilt(classes_, 0.0), p(classes_);
        for (int round = 0;; ++round) {
            std::vector<double> sums(classes_, 0.0);
            solution.coefficients.assign(n_ * rows, 0.0);
            for (std::size_t i = 0; i < n_; ++i) {
                double total = 0.0;
                for (std::size_t c = 0; c < classes_; ++c)
                    total += p[c] = static_cast<double>(p_[c * stride_ + i]) * std::exp(tilt[c]);
                for (std::size_t c = 0; c < classes_; ++c) {
                    const double value = coefficient(i, c, [&](std::size_t k) { return p[k] / total; });
                    sums[c] += value;
                    if (c >= first_) solution.coefficients[i * rows + c - first_] = value;
                }
            }
            if (!problem_.with_bias || round == 3) break;
            solve_curvature(classes_, true, curvature_, sums.data());
            for (std::size_t c = 0; c < classes_; ++c) tilt[c] += sums[c];
        }
        for (std::size_t c = first_; c < classes_; ++c) solution.bias.push_back(bias_[c]);
    }

    const KernelProblem<T>& problem_;
    const StopRule& rule_;
    const WorkingSetSettings& settings_;
    ThreadTeam& team_;
    const Report& report_;
    const KernelRoutines<T>& native_;
    Gram<T>& gram_;
    const std::size_t n_, classes_, first_, stride_, width_;
    std::size_t size_ = 0, kernel_stride_ = 0;
    std::vector<double> bias_;
    std::vector<T> bias_rounded_;
    std::vector<double> imbalance_;  // sum_i B_i, by class
    std::vector<double> curvature_, shifts_, partial_;
    double mass_ = 0.0;
    int stiff_ = 0;        // sets in a row whose passes did not end
    bool failed_ = false;  // the last set gained nothing
    std::vector<double> set_kernel_;
    double set_passes_ = 0.0;  // products inside the sets
    ThreadTeam alone_{1};
    Clock clock_;
    double passes_, curvature_passes_ = 0.0, inner_visits_ = 0.0;
    DualSums sums_;
    Aligned<T> scores_, log_p_, p_, terms_;  // by columns
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
