// Marginals of the local polytope, and the lower bound that they give.
#include "forest_bound.hpp"

#include "dualfield/core/couplings.hpp"

namespace dualfield {
namespace {

double inner(const double* p, const double* scores, std::size_t size) {
    double sum = 0.0;
    for (std::size_t j = 0; j < size; ++j)
        if (p[j] > 0.0) sum += p[j] * scores[j];
    return sum;
}

}  // namespace

double ForestBound::repair(double* nodes, double* pairs) {
    const std::size_t n = forests_->n_nodes, size = k_ * k_;
    // From the roots down again: then all messages are right everywhere.
    for (std::size_t t = 0; t < place_.size(); ++t) walk_to<true>(index(forests_->owner[t]), index(forests_->roots[t]));
    for (std::size_t at = forests_->rising.size(); at-- > 0;) send<true>(index(forests_->rising[at] ^ 1));

    std::fill_n(nodes, n * k_, 0.0);
    double value = 0.0;
    for (std::size_t v = 0; v < n; ++v) {
        double* mean = nodes + v * k_;
        double total = 0.0;
        for (std::size_t f = 0; f < forests_->count; ++f) {
            double* said = cavity_.data();
            gather(f, v, kNone, said);
            const double all = log_sum(said);
            for (std::size_t k = 0; k < k_; ++k) mean[k] += exp_or_zero(said[k] - all);
        }
        for (std::size_t k = 0; k < k_; ++k) total += mean[k];
        for (std::size_t k = 0; k < k_; ++k) mean[k] /= total;
        value += inner(mean, scores_.nodes + v * k_, k_) +
                 (1.0 - static_cast<double>(forests_->degree[v]) / scale_) * routines().entropy(mean, k_);
    }
    for (std::size_t e = 0; e < n_edges(); ++e) {
        double* own = pairs + e * size;
        pair_beliefs(e, own);
        round_to(nodes + index(forests_->ends[2 * e + 1]) * k_, nodes + index(forests_->ends[2 * e]) * k_, own);
        value += inner(own, scores_.pairs + table_of(e) * size, size) + routines().entropy(own, size) / scale_;
    }
    return value;
}

void ForestBound::pair_beliefs(std::size_t edge, double* out) {
    const std::size_t f = index(forests_->forest_of[edge]);
    double *from = row_.data(), *to = column_.data();
    gather(f, index(forests_->ends[2 * edge + 1]), 2 * edge + 1, from);
    gather(f, index(forests_->ends[2 * edge]), 2 * edge, to);
    const double* table = scaled(edge);
    const std::size_t size = k_ * k_, width = padded(size);
    double *cells = cells_.require(width), top = -kInfinity;
    for (std::size_t a = 0; a < k_; ++a)
        for (std::size_t b = 0; b < k_; ++b)
            top = std::max(top, cells[a * k_ + b] = table[a * k_ + b] + from[a] + to[b]);
    std::fill_n(cells + size, width - size, -kInfinity);
    const double part = 1.0 / routines().exponentials(cells, top, width, cells);
    for (std::size_t j = 0; j < size; ++j) out[j] = part * cells[j];
}

// What is missing after the cuts is filled up by a product.
void ForestBound::round_to(const double* rows, const double* columns, double* pairs) {
    double *row = row_.data(), *column = column_.data();
    const double missing = cut_down(k_, rows, columns, pairs, row, column);
    if (!(missing > 0.0)) return;
    for (std::size_t a = 0; a < k_; ++a)
        for (std::size_t b = 0; b < k_; ++b) pairs[a * k_ + b] += row[a] / missing * column[b];
}

}  // namespace dualfield
