#include "dualfield/structures/single.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/parallel.hpp"
#include "dualfield/core/random.hpp"
#include "dualfield/structures/slope.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {
namespace {

constexpr std::size_t kRowsPerTask = 256;

// row becomes exp(row - highest); returns the sum, which lies between 1 and the number of labels.
double exponentiate(double* row, std::size_t n, double highest) {
    return routines().exponentials(row, highest, padded(n), row);
}

// d p_k = p_k (v_k - <p, v>).
class SingleSlope final : public Slope {
  public:
    explicit SingleSlope(const SingleStructure& structure) : structure_(structure) {}

    Status begin(std::size_t example, const ScoreView& scores) override {
        double unused = 0.0;
        Status status = Status::ok;
        p_.resize(structure_.n_labels());
        structure_.marginals({example, example + 1}, scores, 1, {{p_.data()}}, &unused, &status);
        return status;
    }
    double derive(const ScoreView& direction, const PartSums& change) override {
        const double* v = direction.own[0];
        const double mean = std::inner_product(p_.begin(), p_.end(), v, 0.0);
        for (std::size_t k = 0; k < p_.size(); ++k)
            change.own[0][k] = direction.inverse_temperature * p_[k] * (v[k] - mean);
        return direction.inverse_temperature * mean;
    }

  private:
    const SingleStructure& structure_;
    std::vector<double> p_;
};

}  // namespace

SingleStructure::SingleStructure(std::size_t n_labels, std::size_t n_examples)
    : n_labels_(n_labels), offsets_(n_examples + 1) {
    std::iota(offsets_.begin(), offsets_.end(), 0);
    label_offsets_ = offsets_;
    parts_.tables.push_back({n_labels, offsets_, label_offsets_.first(n_examples)});
}

template <class Body>
void SingleStructure::for_rows(Examples examples, const ScoreView& view, std::size_t n_threads, Status* statuses,
                               Body body) const {
    const std::size_t n_tasks = (examples.size() + kRowsPerTask - 1) / kRowsPerTask;
    std::vector<Buffer> rows(std::max<std::size_t>(1, std::min(n_threads, n_tasks)));
    parallel_for(n_tasks, n_threads, [&](std::size_t worker, std::size_t task) {
        double* values = rows[worker].require(padded(n_labels_));
        const std::size_t end = std::min(examples.size(), (task + 1) * kRowsPerTask);
        for (std::size_t row = task * kRowsPerTask; row < end; ++row) {
            const RowBounds bounds = routines().read_row(view.own[0] + row * n_labels_, nullptr, n_labels_,
                                                         view.inverse_temperature, values);
            statuses[row] = bounds.bad_number              ? Status::bad_number
                            : bounds.highest == -kInfinity ? Status::impossible
                                                           : Status::ok;
            if (statuses[row] == Status::ok) body(row, values, bounds.highest);
        }
    });
}

void SingleStructure::argmax(Examples examples, const ScoreView& view, std::size_t n_threads, std::int32_t* labels,
                             Status* statuses) const {
    for_rows(examples, view, n_threads, statuses, [&](std::size_t row, const double* values, double) {
        labels[row] = static_cast<std::int32_t>(std::max_element(values, values + n_labels_) - values);
    });
}

void SingleStructure::maximum(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                              Status* statuses) const {
    for_rows(examples, view, n_threads, statuses,
             [&](std::size_t row, const double*, double highest) { out[row] = highest; });
}

void SingleStructure::log_partition(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                    Status* statuses) const {
    for_rows(examples, view, n_threads, statuses, [&](std::size_t row, double* values, double highest) {
        out[row] = highest + std::log(exponentiate(values, n_labels_, highest));
    });
}

void SingleStructure::marginals(Examples examples, const ScoreView& view, std::size_t n_threads, const PartSums& sums,
                                double* out, Status* statuses) const {
    double* nodes = sums.own[0];
    for_rows(examples, view, n_threads, statuses, [&](std::size_t row, double* values, double highest) {
        const double total = exponentiate(values, n_labels_, highest);
        out[row] = highest + std::log(total);
        for (std::size_t k = 0; k < n_labels_; ++k) nodes[row * n_labels_ + k] = values[k] / total;
    });
}

void SingleStructure::entropy(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                              Status* statuses) const {
    for_rows(examples, view, n_threads, statuses, [&](std::size_t row, double* values, double highest) {
        const double total = exponentiate(values, n_labels_, highest);
        // H = log total - sum p (score - highest), and score - highest = log of the exponential.
        double energy = 0.0;
        for (std::size_t k = 0; k < n_labels_; ++k)
            if (values[k] > 0.0) energy += values[k] * std::log(values[k]);
        out[row] = std::log(total) - energy / total;
    });
}

void SingleStructure::sample(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t n_samples,
                             std::uint64_t seed, std::int32_t* labels, Status* statuses) const {
    for_rows(examples, view, n_threads, statuses, [&](std::size_t row, double* values, double highest) {
        exponentiate(values, n_labels_, highest);
        std::partial_sum(values, values + n_labels_, values);
        const double total = values[n_labels_ - 1];
        RandomStream random(seed, row);
        for (std::size_t s = 0; s < n_samples; ++s) {
            const double* at = std::upper_bound(values, values + n_labels_, random.uniform() * total);
            // Rounding may leave the draw at the very end: take the last label that has any probability.
            if (at == values + n_labels_) at = std::lower_bound(values, values + n_labels_, total);
            labels[s * examples.size() + row] = static_cast<std::int32_t>(at - values);
        }
    });
}

void SingleStructure::k_best(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t k,
                             std::int32_t* labels, double* best, Status* statuses) const {
    for_rows(examples, view, n_threads, statuses, [&](std::size_t row, const double* values, double) {
        std::vector<std::int32_t> order(n_labels_);
        std::iota(order.begin(), order.end(), 0);
        const std::size_t found = std::min(k, order.size());
        std::partial_sort(
            order.begin(), order.begin() + static_cast<std::ptrdiff_t>(found), order.end(),
            [&](std::int32_t a, std::int32_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; });
        for (std::size_t r = 0; r < k; ++r) {
            const double score = r < found ? values[order[r]] : -kInfinity;
            best[row * k + r] = score;
            labels[r * examples.size() + row] = score > -kInfinity ? order[r] : -1;
        }
    });
}

void SingleStructure::max_marginals(Examples examples, const ScoreView& view, std::size_t n_threads, double* nodes,
                                    Status* statuses) const {
    for_rows(examples, view, n_threads, statuses, [&](std::size_t row, const double* values, double) {
        std::copy_n(values, n_labels_, nodes + row * n_labels_);
    });
}

void SingleStructure::score(Examples examples, const ScoreView& view, std::size_t, const std::int32_t* labels,
                            double* out, Status* statuses) const {
    for (std::size_t row = 0; row < examples.size(); ++row) {
        out[row] = view.own[0][row * n_labels_ + static_cast<std::size_t>(labels[row])] * view.inverse_temperature;
        statuses[row] = out[row] < kInfinity ? Status::ok : Status::bad_number;
    }
}

std::unique_ptr<Slope> SingleStructure::slope() const {
    return std::make_unique<SingleSlope>(*this);
}

void SingleStructure::list_parts(std::size_t, const std::int32_t* labels, PartList& out) const {
    out.own[0].assign(1, labels[0]);
    out.shared.clear();
}

}  // namespace dualfield
