// Chains with kernel scores and hinge losses: swaps of mass between labellings, as in flow_ascent.hpp.
//
// The scores of all labels are at hand, so that the best labelling comes from all of them at each visit. A swap moves
// mass from the worst labelling that has some to the best one, on one segment of nodes where they differ at a time; its
// curvature is that of the kernel between the nodes of the segment and of the weights of its cliques.
#include <algorithm>
#include <vector>

#include "../dual/flow_paths.hpp"
#include "../dual/sparse_flow.hpp"
#include "dualfield/structures/chain.hpp"
#include "dualfield/structures/chain_block.hpp"
#include "kernel_parts.hpp"
#include "kernel_proof.hpp"

namespace dualfield {
namespace {

constexpr int kMostRounds = 6;
constexpr double kSolved = 0.1;  // rounds go on until this share of the gap is left

class KernelFlows final : public KernelParts {
  public:
    KernelFlows(const Problem& problem, double scale)
        : KernelParts(problem, scale),
          chain_(*problem.structure->chain()),
          block_(chain_.topology(), chain_.start_limits(), chain_.stop_limits()),
          flow_(problem.n_nodes()),
          clique_change_(checked_product(n_labels_, n_labels_), 0.0) {
        for (std::size_t i = 0; i < problem.n_examples(); ++i)
            for (std::size_t t = 0; t < problem.length(i); ++t)
                flow_.add(problem.first(i) + t, before_truth(i, t), truth(i, t), 1.0);
        for (auto* labels : {&best_, &worst_}) labels->resize(longest());
        viterbi_.resize(longest());
    }

    bool wants_mean() const override { return true; }

    double visit(std::size_t i, double* scores, const double* gram, double* change) override {
        const std::size_t length = problem_.length(i);
        double gain = 0.0, first_gap = 0.0;
        for (int round = 0; round < kMostRounds; ++round) {
            const double* augmented = augment(i, scores, w_.data());
            const double maximum = best_labelling(i, augmented, w_.data());
            const double gap = maximum - mean(i, augmented);
            if (round == 0) first_gap = gap;
            if (!(gap > kSolved * first_gap)) break;
            std::copy_n(viterbi_.begin(), length, best_.begin());
            find_worst(i, augmented);
            double gained = swap_segments(i, scores, gram, change);
            // Between the labellings that have mass already.
            paths_.find(flow_, problem_.first(i), length, 0, length, augment(i, scores, w_.data()), w_.data(),
                        n_labels_);
            paths_.trace(best_, worst_);
            gained += swap_segments(i, scores, gram, change);
            if (!(gained > 0.0)) break;
            gain += gained;
        }
        return gain;
    }

    double gap(std::size_t i, const double* scores) override {
        const double* augmented = augment(i, scores, w_.data());
        const double maximum = best_labelling(i, augmented, w_.data());
        return problem_.weights[i] * std::max(maximum - mean(i, augmented), 0.0);
    }

    double loss(std::size_t i, const double* scores, const double* weights) override {
        const double* augmented = augment(i, scores, weights);
        const double maximum = best_labelling(i, augmented, weights);
        return problem_.weights[i] * std::max(maximum - true_score(i, augmented, weights), 0.0);
    }

    double settle(std::size_t i, double* out) override {
        const double weight = problem_.weights[i];
        flow_.balance(problem_.first(i), problem_.length(i));
        std::fill_n(out, problem_.length(i) * n_labels_, 0.0);
        double cost = 0.0;
        const auto add = [&](std::size_t t, std::uint32_t from, std::uint32_t to, double mass) {
            out[t * n_labels_ + to] += mass;
            if (t > 0) add_clique(from, to, mass);
            add_ends(i, t, to, mass);
        };
        for (std::size_t t = 0; t < problem_.length(i); ++t) {
            const auto edges = flow_.edges(problem_.first(i) + t);
            if (edges.size() == 1 && edges[0].to == truth(i, t) && edges[0].from == before_truth(i, t)) continue;
            for (const FlowEdge& edge : edges) {
                add(t, edge.from, edge.to, -weight * edge.mass);
                if (problem_.cost) cost += edge.mass * problem_.cost[truth(i, t) * n_labels_ + edge.to];
            }
            add(t, before_truth(i, t), truth(i, t), weight);
        }
        return weight * cost;
    }

  private:
    // Node scores with the cost of wrong labels and the weights of the ends.
    const double* augment(std::size_t i, const double* scores, const double* weights) {
        double* out = KernelParts::augment(i, scores);
        double* last = out + (problem_.length(i) - 1) * n_labels_;
        for (std::size_t k = 0; chain_.with_ends() && k < n_labels_; ++k) {
            out[k] += weights[chain_.start_begin() + k];
            last[k] += weights[chain_.stop_begin() + k];
        }
        return out;
    }
    // The score of the truth at augmented scores: the truth costs nothing.
    double true_score(std::size_t i, const double* augmented, const double* weights) const {
        double total = 0.0;
        for (std::size_t t = 0; t < problem_.length(i); ++t) total += augmented[t * n_labels_ + truth(i, t)];
        for (std::size_t t = 1; t < problem_.length(i); ++t)
            total += weights[truth(i, t - 1) * n_labels_ + truth(i, t)];
        return total;
    }
    std::uint32_t truth(std::size_t i, std::size_t t) const {
        return static_cast<std::uint32_t>(problem_.labels[problem_.first(i) + t]);
    }
    std::uint32_t before_truth(std::size_t i, std::size_t t) const { return t == 0 ? 0 : truth(i, t - 1); }
    void add_clique(std::uint32_t from, std::uint32_t to, double mass) {
        const std::size_t clique = from * n_labels_ + to;
        w_[clique] += rate_ * mask_[clique] * mass;
    }
    void add_ends(std::size_t i, std::size_t t, std::uint32_t to, double mass) {
        if (chain_.with_ends() && t == 0) w_[chain_.start_begin() + to] += rate_ * mass;
        if (chain_.with_ends() && t + 1 == problem_.length(i)) w_[chain_.stop_begin() + to] += rate_ * mass;
    }

    // Into viterbi_; returns its score.
    double best_labelling(std::size_t i, const double* augmented, const double* weights) {
        const auto answer = block_.best(augmented, problem_.length(i), weights, viterbi_.data());
        if (answer.status == Status::bad_number) require_finite(kInfinity);
        return answer.log_partition;
    }
    // The mean score under the flow.
    double mean(std::size_t i, const double* augmented) const {
        double sum = 0.0;
        for (std::size_t t = 0; t < problem_.length(i); ++t)
            for (const FlowEdge& edge : flow_.edges(problem_.first(i) + t))
                sum += edge.mass * (augmented[t * n_labels_ + edge.to] +
                                    (t > 0 ? w_.data()[edge.from * n_labels_ + edge.to] : 0.0));
        return sum;
    }
    void find_worst(std::size_t i, const double* augmented) {
        const std::size_t length = problem_.length(i);
        paths_.find(flow_, problem_.first(i), length, 0, length, augmented, w_.data(), n_labels_);
        unused_.resize(worst_.size());
        paths_.trace(unused_, worst_);
    }

    double swap_segments(std::size_t i, double* scores, const double* gram, double* change) {
        const std::size_t length = problem_.length(i);
        double gain = 0.0;
        for (std::size_t u = 0; u < length; ++u) {
            if (best_[u] == worst_[u]) continue;
            std::size_t end = u + 1;
            while (end < length && best_[end] != worst_[end]) ++end;
            gain += swap(i, u, end, scores, gram, change);
            u = end;
        }
        return gain;
    }

    // Calls use(clique, sign) for the cliques that touch a segment, as far as they have a weight.
    template <class Use>
    void for_cliques(std::size_t length, std::size_t u, std::size_t end, const Use& use) const {
        for (std::size_t t = std::max<std::size_t>(u, 1); t <= end && t < length; ++t) {
            const std::size_t better = best_[t - 1] * n_labels_ + best_[t];
            const std::size_t worse = worst_[t - 1] * n_labels_ + worst_[t];
            if (mask_[better] != 0.0) use(better, 1.0);
            if (mask_[worse] != 0.0) use(worse, -1.0);
        }
    }

    // The segment [u, end), at whose ends the labellings agree.
    double swap(std::size_t i, std::size_t u, std::size_t end, double* scores, const double* gram, double* change) {
        const std::size_t length = problem_.length(i), first = problem_.first(i), last = std::min(end, length - 1);
        const auto before = [](const std::vector<std::uint32_t>& labels, std::size_t t) {
            return t == 0 ? 0u : labels[t - 1];
        };
        double slope = 0.0, square = 0.0;
        const double* augmented = augment(i, scores, w_.data());
        for (std::size_t t = u; t < end; ++t) {
            slope += augmented[t * n_labels_ + best_[t]] - augmented[t * n_labels_ + worst_[t]];
            for (std::size_t v = u; v < end; ++v) {
                const int same = (best_[t] == best_[v]) + (worst_[t] == worst_[v]) - (best_[t] == worst_[v]) -
                                 (worst_[t] == best_[v]);
                if (same != 0) square += same * gram[t * length + v];
            }
        }
        for_cliques(length, u, end, [&](std::size_t clique, double sign) {
            slope += sign * w_.data()[clique];
            clique_change_[clique] += sign;
        });
        for_cliques(length, u, end, [&](std::size_t clique, double) {
            square += rate_ * clique_change_[clique] * clique_change_[clique];
            clique_change_[clique] = 0.0;
        });
        if (chain_.with_ends()) square += 2.0 * rate_ * ((u == 0) + (end == length));
        if (!(slope > kNoSlope)) return 0.0;
        double step = 1.0;
        for (std::size_t t = u; t <= last; ++t)
            step = std::min(step, flow_.mass(first + t, before(worst_, t), worst_[t]));
        const double weight = problem_.weights[i];
        if (square > 0.0) step = std::min(step, slope / (weight * square));
        if (!(step > 0.0)) return 0.0;
        const double by = weight * step;
        for (std::size_t t = u; t <= last; ++t) {
            flow_.add(first + t, before(worst_, t), worst_[t], -step);
            flow_.add(first + t, before(best_, t), best_[t], step);
        }
        for (std::size_t t = u; t < end; ++t) {
            change[t * n_labels_ + best_[t]] -= by;
            change[t * n_labels_ + worst_[t]] += by;
            add_ends(i, t, best_[t], -by);
            add_ends(i, t, worst_[t], by);
            for (std::size_t v = 0; v < length; ++v) {
                scores[v * n_labels_ + best_[t]] -= by * gram[t * length + v];
                scores[v * n_labels_ + worst_[t]] += by * gram[t * length + v];
            }
        }
        for_cliques(length, u, end, [&](std::size_t clique, double sign) { w_[clique] -= rate_ * by * sign; });
        return by * (slope - 0.5 * by * square);
    }

    static constexpr double kNoSlope = 1e-13;

    const ChainStructure& chain_;
    ChainBlock block_;
    SparseFlow flow_;
    FlowPaths paths_;
    std::vector<double> clique_change_;
    std::vector<std::uint32_t> best_, worst_, unused_;
    std::vector<std::int32_t> viterbi_;
};

}  // namespace

std::unique_ptr<DualBlocks> kernel_flows(const Problem& problem, double scale) {
    return std::make_unique<KernelFlows>(problem, scale);
}

}  // namespace dualfield
