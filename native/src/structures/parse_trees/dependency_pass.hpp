// One sentence: its arcs are read, then the passes of arc_task.hpp go over them, and answers are put together.
//
// Every word has one head, so the best arc to each word may be taken off all arcs to it: exponentials are at most 1,
// and what is lost where they underflow weighs less than 1e-308 times the number of trees. As long as the sum is large
// against that, products are right to the last digits; otherwise the pass is made again in logarithms.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/layout.hpp"
#include "dualfield/core/random.hpp"
#include "dualfield/structures/parse_trees/arc_task.hpp"
#include "dualfield/structures/parse_trees/dependency.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

class DependencyStructure::Pass {
  public:
    explicit Pass(const DependencyStructure& structure)
        : structure_(structure), n_labels_(structure.n_labels_), width_(padded(structure.n_labels_ - 1)) {}

    void begin(std::size_t example, std::size_t from, const ScoreView& view) {
        n_ = DependencyStructure::n_words(structure_.length(example));
        stride_ = ArcTask::stride(n_);
        own_ = structure_.view_of(example, from, view).own[0];
        factor_ = view.inverse_temperature;
        task_ = {};
        task_.n_words = n_;
        task_.is_single = structure_.is_single_;
    }

    double total() const { return total_; }
    Status status() const {
        if (is_bad_ || !(total_ < kInfinity)) return Status::bad_number;
        return total_ > -kInfinity ? Status::ok : Status::impossible;
    }
    std::size_t n_words() const { return n_; }
    bool is_single() const { return structure_.is_single_; }
    std::size_t n_labels() const { return n_labels_; }
    double base() const { return base_; }
    // The scores of the labels of an arc, the first of which says that it is not there.
    const double* labels_of(std::size_t head, std::size_t child) const {
        return own_ + row(n_, head, child - 1) * n_labels_;
    }
    double factor() const { return factor_; }
    double arc(std::size_t head, std::size_t child) const { return arcs_.data()[child * stride_ + head]; }
    double up(ArcTask::Chart chart, std::size_t row, std::size_t column) const {
        return task_.up[chart][row * stride_ + column];
    }

    // Of numbers in charts: products, or logarithms of them.
    bool is_product() const { return is_product_; }
    double times(double a, double b) const { return is_product_ ? a * b : a + b; }
    // All trees whose root has one child, r.
    double root_value(std::size_t r) const {
        return times(task_.arcs[r * stride_], times(up(ArcTask::kLeft, 1, r), up(ArcTask::kRight, r, n_)));
    }
    // p(label | the arc of a row is there), after the sums.
    double label_share(std::size_t row, std::size_t label) const {
        return n_labels_ == 2 ? 1.0 : shares_.data()[row * width_ + label - 1];
    }

    void up_sum() {
        if (!read<false>()) return;
        double shifts = 0.0;
        double* exponentials = exponentials_.require(ArcTask::chart_size(n_));
        std::fill_n(exponentials, stride_, 0.0);
        for (std::size_t child = 1; child <= n_; ++child) {
            double* row = arcs_.data() + child * stride_;
            const double highest = *std::max_element(row, row + n_ + 1);
            if (!(highest > -kInfinity)) return;
            shifts += highest;
            for (std::size_t head = 0; head <= n_; ++head) row[head] -= highest;
            routines().exponentials(row, 0.0, stride_, exponentials + child * stride_);
        }
        const auto n = static_cast<double>(n_);
        double found = -kInfinity;
        is_product_ = n <= kMostWords;
        if (is_product_) {
            task_.arcs = exponentials;
            routines().arc_products_up(task_);
            found = std::log(task_.total);
            is_product_ = found < kInfinity && found > kLeast + kTreesByWord * n + 3.0 * std::log(n);
        }
        if (!is_product_) {
            task_.arcs = arcs_.data();
            routines().arc_logarithms_up(task_);
            found = task_.total;
        }
        log_sum_ = found;
        if (found > -kInfinity) total_ = base_ + shifts + found;
    }
    void up_max() {
        is_product_ = false;
        if (!read<true>()) return;
        task_.arcs = arcs_.data();
        routines().arc_maxima_up(task_);
        if (task_.total > -kInfinity) total_ = base_ + task_.total;
    }

    // After up_sum, with an answer.
    void down_sum() {
        if (n_ == 0) return;
        require_down();
        if (is_product_)
            routines().arc_products_down(task_);
        else
            routines().arc_logarithms_down(task_);
        // Probabilities of the arcs to a word sum to 1 but for rounding.
        for (std::size_t child = 1; child <= n_; ++child) {
            double* row = task_.answer + child * stride_;
            double sum = 0.0;
            for (std::size_t head = 0; head <= n_; ++head) sum += row[head];
            for (std::size_t head = 0; head <= n_; ++head) row[head] = std::min(row[head] / sum, 1.0);
        }
    }
    void down_max() {
        if (n_ == 0) return;
        require_down();
        routines().arc_maxima_down(task_);
    }

    // Probabilities of labels, after both sums.
    void spread(double* own) const {
        for_rows([&](std::size_t row, std::size_t head, std::size_t child) {
            double* out = own + row * n_labels_;
            const double p = task_.answer[child * stride_ + head];
            out[0] = own_[row * n_labels_] > -kInfinity ? 1.0 - p : 0.0;
            if (n_labels_ == 2) {
                out[1] = p;
                return;
            }
            const double* shares = shares_.data() + row * width_;
            for (std::size_t k = 1; k < n_labels_; ++k) out[k] = p * shares[k - 1];
        });
    }

    // The best scores with each label, after both maxima.
    void spread_max(double* own) const {
        std::vector<double> first(n_ + 1, -kInfinity), second(n_ + 1, -kInfinity);  // best arcs to each word
        for (std::size_t child = 1; child <= n_; ++child)
            for (std::size_t head = 0; head <= n_; ++head) {
                const double value = task_.answer[child * stride_ + head];
                second[child] = std::max(second[child], std::min(value, first[child]));
                first[child] = std::max(first[child], value);
            }
        for_rows([&](std::size_t row, std::size_t head, std::size_t child) {
            double* out = own + row * n_labels_;
            const double *in = own_ + row * n_labels_, best = task_.answer[child * stride_ + head];
            out[0] = in[0] > -kInfinity ? base_ + (best < first[child] ? first[child] : second[child]) : -kInfinity;
            const double highest = *std::max_element(in + 1, in + n_labels_);
            for (std::size_t k = 1; k < n_labels_; ++k)
                out[k] = in[k] > -kInfinity ? base_ + best + factor_ * (in[k] - highest) : -kInfinity;
        });
    }

    // After down_sum.
    double entropy() const {
        double total = n_ > 0 ? log_sum_ : 0.0;
        for_rows([&](std::size_t row, std::size_t head, std::size_t child) {
            const double p = task_.answer[child * stride_ + head];
            if (!(p > 0.0)) return;
            total -= p * arc(head, child);
            for (std::size_t k = 1; n_labels_ > 2 && k < n_labels_; ++k)
                if (const double q = shares_.data()[row * width_ + k - 1]; q > 0.0) total -= p * q * std::log(q);
        });
        return std::max(total, 0.0);
    }

    // The best tree, after up_max.
    void decode(std::int32_t* labels) {
        walk([](std::span<const double> values) {
            return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
        });
        write(labels, [&](std::size_t row) {
            const double* in = own_ + row * n_labels_;
            return static_cast<std::size_t>(std::max_element(in + 1, in + n_labels_) - in);
        });
    }

    // A tree, after up_sum.
    template <class Uniform>
    void draw(Uniform uniform, std::int32_t* labels) {
        walk([&](std::span<double> values) {
            if (!is_product_) {
                const double highest = *std::ranges::max_element(values);
                for (double& value : values) value = std::exp(value - highest);
            }
            return draw_index(values, uniform());
        });
        write(labels, [&](std::size_t row) {
            if (n_labels_ == 2) return std::size_t{1};
            return 1 + draw_index({shares_.data() + row * width_, n_labels_ - 1}, uniform());
        });
    }

  private:
    enum class Kind { right, left, both };

    // use(row, head, child) for all arcs, positions counted with the root.
    template <class Use>
    void for_rows(Use use) const {
        std::size_t at = 0;
        for (std::size_t child = 1; child <= n_; ++child)
            for (std::size_t head = 0; head <= n_; ++head)
                if (head != child) use(at++, head, child);
    }

    // The scores of arcs against those of their absence; false if there is nothing to do.
    template <bool is_max>
    bool read() {
        is_bad_ = false;
        base_ = log_sum_ = 0.0;
        total_ = n_ > 0 ? -kInfinity : 0.0;
        if (n_ == 0) return false;
        const std::size_t size = ArcTask::chart_size(n_);
        double* arcs = arcs_.require(size);
        std::fill_n(arcs, size, -kInfinity);
        if (n_labels_ > 2) shares_.require(n_ * n_ * width_);
        std::size_t at = 0;
        bool is_possible = true;
        for (std::size_t child = 1; child <= n_; ++child) {
            double* row = arcs + child * stride_;
            std::size_t needed = 0, which = 0;
            for (std::size_t head = 0; head <= n_; ++head) {
                if (head == child) continue;
                const double without = factor_ * own_[at * n_labels_], with = of_labels<is_max>(at);
                is_bad_ |= !(without < kInfinity) || !(with < kInfinity);
                ++at;
                if (without > -kInfinity) {
                    base_ += without;
                    row[head] = with - without;
                } else {
                    ++needed;
                    which = head;
                    row[head] = with;
                }
            }
            is_possible &= needed < 2;
            for (std::size_t head = 0; needed == 1 && head <= n_; ++head)
                if (head != which) row[head] = -kInfinity;
        }
        if (is_bad_ || !is_possible) return false;
        double* charts = up_.require(ArcTask::kUpCharts * size);
        for (std::size_t c = 0; c < ArcTask::kUpCharts; ++c) task_.up[c] = charts + c * size;
        return true;
    }

    // All labels of an arc together.
    template <bool is_max>
    double of_labels(std::size_t at) {
        const double* in = own_ + at * n_labels_ + 1;
        if (n_labels_ == 2) return factor_ * in[0];
        double* row = is_max ? row_.require(width_) : shares_.data() + at * width_;
        const RowBounds bounds = routines().read_row(in, nullptr, n_labels_ - 1, factor_, row);
        if (bounds.bad_number) return kInfinity;
        if (is_max) return bounds.highest;
        if (!(bounds.highest > -kInfinity)) {
            std::fill_n(row, width_, 0.0);
            return -kInfinity;
        }
        const double sum = routines().exponentials(row, bounds.highest, width_, row);
        for (std::size_t k = 0; k < width_; ++k) row[k] /= sum;
        return bounds.highest + std::log(sum);
    }

    void require_down() {
        const std::size_t size = ArcTask::chart_size(n_);
        double* charts = down_.require((ArcTask::kDownCharts + 1) * size);
        for (std::size_t c = 0; c < ArcTask::kDownCharts; ++c) task_.down[c] = charts + c * size;
        task_.answer = charts + ArcTask::kDownCharts * size;
    }

    // Goes down from the top. Of the values of all ways to make a span choose(values) takes one; heads_ are what they
    // lead to.
    template <class Choose>
    void walk(Choose choose) {
        heads_.assign(n_ + 1, 0);
        values_.resize(n_ + 1);
        spans_.clear();
        if (n_ == 0) return;
        if (structure_.is_single_) {
            for (std::size_t r = 1; r <= n_; ++r) values_[r - 1] = root_value(r);
            const std::size_t r = 1 + choose(std::span(values_).first(n_));
            spans_ = {{Kind::right, r, n_}, {Kind::left, 1, r}};
        } else {
            spans_ = {{Kind::right, 0, n_}};
        }
        while (!spans_.empty()) {
            const Span span = spans_.back();
            spans_.pop_back();
            if (span.first < span.last) split(span, choose);
        }
    }
    struct Span {
        Kind kind;
        std::size_t first, last;
    };
    template <class Choose>
    void split(const Span& span, Choose choose) {
        const std::size_t i = span.first, j = span.last, width = j - i;
        for (std::size_t w = 0; w < width; ++w) {
            const std::size_t k = i + w;
            if (span.kind == Kind::both)
                values_[w] = times(up(ArcTask::kRight, i, k), up(ArcTask::kLeft, k + 1, j));
            else if (span.kind == Kind::right)
                values_[w] = times(up(ArcTask::kToEnd, i, k + 1), up(ArcTask::kRight, k + 1, j));
            else
                values_[w] = times(up(ArcTask::kLeft, i, k), up(ArcTask::kToBeginByEnd, j, k));
        }
        std::size_t k = i + choose(std::span(values_).first(width));
        if (span.kind == Kind::both) {
            spans_.push_back({Kind::right, i, k});
            spans_.push_back({Kind::left, k + 1, j});
        } else if (span.kind == Kind::right) {
            heads_[++k] = i;
            spans_.push_back({Kind::both, i, k});
            spans_.push_back({Kind::right, k, j});
        } else {
            heads_[k] = j;
            spans_.push_back({Kind::left, i, k});
            spans_.push_back({Kind::both, k, j});
        }
    }

    template <class LabelOf>
    void write(std::int32_t* labels, LabelOf label_of) const {
        std::fill_n(labels, n_ * n_, 0);
        for (std::size_t child = 1; child <= n_; ++child) {
            const std::size_t at = row(n_, heads_[child], child - 1);
            labels[at] = static_cast<std::int32_t>(label_of(at));
        }
    }

    // What a lost product may weigh against the sum, in logarithms, with room for 16 digits; trees of n words are fewer
    // than 6.75^n.
    static constexpr double kLeast = -650.0, kTreesByWord = 2.0, kMostWords = 350.0;

    const DependencyStructure& structure_;
    std::size_t n_labels_, width_, n_ = 0, stride_ = 0;
    const double* own_ = nullptr;
    double factor_ = 1.0, total_ = 0.0, base_ = 0.0, log_sum_ = 0.0;
    bool is_bad_ = false, is_product_ = false;
    ArcTask task_;
    Buffer arcs_, exponentials_, shares_, row_, up_, down_;
    std::vector<std::size_t> heads_;
    std::vector<double> values_;
    std::vector<Span> spans_;
};

}  // namespace dualfield
