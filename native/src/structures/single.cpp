#include "dualfield/structures/single.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/parallel.hpp"
#include "dualfield/core/random.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {
namespace {

constexpr std::size_t kRowsPerTask = 256;

// row becomes exp(row - highest); returns the sum, which lies between 1 and the number of labels.
double exponentiate(double* row, std::size_t n, double highest) {
    return routines().exponentials(row, highest, padded(n), row);
}

}  // namespace

template <class Body>
void SingleOracle::for_rows(Body body) {
    const std::size_t n_tasks = (scores_.n_rows + kRowsPerTask - 1) / kRowsPerTask;
    std::vector<Buffer> rows(std::max<std::size_t>(1, std::min(n_threads_, n_tasks)));
    parallel_for(n_tasks, n_threads_, [&](std::size_t worker, std::size_t task) {
        double* values = rows[worker].require(padded(scores_.n_labels));
        const std::size_t end = std::min(scores_.n_rows, (task + 1) * kRowsPerTask);
        for (std::size_t row = task * kRowsPerTask; row < end; ++row) {
            const std::size_t first = row * scores_.n_labels;
            const RowBounds bounds =
                routines().read_row(scores_.node + first, scores_.cost ? scores_.cost + first : nullptr,
                                    scores_.n_labels, scores_.inverse_temperature, values);
            statuses_[row] = bounds.bad_number              ? Status::bad_number
                             : bounds.highest == -kInfinity ? Status::impossible
                                                            : Status::ok;
            if (statuses_[row] == Status::ok) body(row, values, bounds.highest);
        }
    });
}

void SingleOracle::argmax(std::int32_t* labels) {
    for_rows([&](std::size_t row, const double* values, double) {
        labels[row] = static_cast<std::int32_t>(std::max_element(values, values + scores_.n_labels) - values);
    });
}

void SingleOracle::maximum(double* out) {
    for_rows([&](std::size_t row, const double*, double highest) { out[row] = highest; });
}

void SingleOracle::log_partition(double* out) {
    for_rows([&](std::size_t row, double* values, double highest) {
        out[row] = highest + std::log(exponentiate(values, scores_.n_labels, highest));
    });
}

void SingleOracle::marginals(double* nodes, CliqueOutput, double*, double* log_partition) {
    for_rows([&](std::size_t row, double* values, double highest) {
        const double total = exponentiate(values, scores_.n_labels, highest);
        log_partition[row] = highest + std::log(total);
        for (std::size_t k = 0; k < scores_.n_labels; ++k) nodes[row * scores_.n_labels + k] = values[k] / total;
    });
}

void SingleOracle::entropy(double* out) {
    for_rows([&](std::size_t row, double* values, double highest) {
        const double total = exponentiate(values, scores_.n_labels, highest);
        // H = log total - sum p (score - highest), and score - highest = log of the exponential.
        double energy = 0.0;
        for (std::size_t k = 0; k < scores_.n_labels; ++k)
            if (values[k] > 0.0) energy += values[k] * std::log(values[k]);
        out[row] = std::log(total) - energy / total;
    });
}

void SingleOracle::sample(std::size_t n_samples, std::uint64_t seed, std::int32_t* labels) {
    for_rows([&](std::size_t row, double* values, double highest) {
        exponentiate(values, scores_.n_labels, highest);
        std::partial_sum(values, values + scores_.n_labels, values);
        const double total = values[scores_.n_labels - 1];
        RandomStream random(seed, row);
        for (std::size_t s = 0; s < n_samples; ++s) {
            const double* at = std::upper_bound(values, values + scores_.n_labels, random.uniform() * total);
            // Rounding may leave the draw at the very end: take the last label that has any probability.
            if (at == values + scores_.n_labels) at = std::lower_bound(values, values + scores_.n_labels, total);
            labels[s * scores_.n_rows + row] = static_cast<std::int32_t>(at - values);
        }
    });
}

void SingleOracle::k_best(std::size_t k, std::int32_t* labels, double* best) {
    for_rows([&](std::size_t row, const double* values, double) {
        std::vector<std::int32_t> order(scores_.n_labels);
        std::iota(order.begin(), order.end(), 0);
        const std::size_t found = std::min(k, order.size());
        std::partial_sort(
            order.begin(), order.begin() + static_cast<std::ptrdiff_t>(found), order.end(),
            [&](std::int32_t a, std::int32_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; });
        for (std::size_t r = 0; r < k; ++r) {
            const double score = r < found ? values[order[r]] : -kInfinity;
            best[row * k + r] = score;
            labels[r * scores_.n_rows + row] = score > -kInfinity ? order[r] : -1;
        }
    });
}

void SingleOracle::max_marginals(double* nodes) {
    for_rows([&](std::size_t row, const double* values, double) {
        std::copy_n(values, scores_.n_labels, nodes + row * scores_.n_labels);
    });
}

void SingleOracle::score(const std::int32_t* labels, double* out) {
    for (std::size_t row = 0; row < scores_.n_rows; ++row) {
        const std::size_t at = row * scores_.n_labels + static_cast<std::size_t>(labels[row]);
        out[row] = (scores_.node[at] + (scores_.cost ? scores_.cost[at] : 0.0)) * scores_.inverse_temperature;
        statuses_[row] = out[row] < kInfinity ? Status::ok : Status::bad_number;
    }
}

}  // namespace dualfield
