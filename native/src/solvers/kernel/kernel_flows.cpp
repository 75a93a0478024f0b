// Chains with kernel scores and hinge losses: swaps of mass between labellings, as in segment_swap.hpp.
//
// The scores of all labels are at hand, so that the best labelling comes from all of them at each visit. A swap moves
// mass from the worst labelling that has some to the best one, on one segment of nodes where they differ at a time; its
// curvature is that of the kernel between the nodes of the segment and of the weights of its cliques.
#include <algorithm>
#include <vector>

#include "../dual/chain_flow.hpp"
#include "../dual/flow_paths.hpp"
#include "../dual/segment_swap.hpp"
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
          flow_(problem),
          clique_change_(checked_product(n_labels_, n_labels_), 0.0),
          pair_(problem.longest()),
          viterbi_(problem.longest()) {
        flow_.begin_at_truth();
    }

    bool wants_mean() const override { return true; }

    double visit(std::size_t i, double* scores, const double* gram, double* change) override {
        double gain = 0.0, first_gap = 0.0;
        for (int round = 0; round < kMostRounds; ++round) {
            const double* augmented = augment(i, scores, w_.data());
            const double maximum = best_labelling(i, augmented, w_.data());
            const double gap = maximum - mean(i, augmented);
            if (round == 0) first_gap = gap;
            if (!(gap > kSolved * first_gap)) break;
            find_support(i, augmented);
            std::copy_n(viterbi_.begin(), problem_.length(i), pair_.better.begin());
            double gained = swap_segments(i, scores, gram, change);
            // Between the labellings that have mass already.
            find_support(i, augment(i, scores, w_.data()));
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
        flow_.for_difference(i, [&](std::size_t t, std::uint32_t from, std::uint32_t to, double mass) {
            const double by = weight * mass;
            out[t * n_labels_ + to] += by;
            if (t > 0) add_clique(from, to, by);
            add_ends(i, t, to, by);
        });
        return weight * flow_.expected_cost(i);
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
        for (std::size_t t = 0; t < problem_.length(i); ++t) total += augmented[t * n_labels_ + flow_.truth(i, t)];
        for (std::size_t t = 1; t < problem_.length(i); ++t)
            total += weights[flow_.truth(i, t - 1) * n_labels_ + flow_.truth(i, t)];
        return total;
    }
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
    // The best and the worst labelling that have mass.
    void find_support(std::size_t i, const double* augmented) {
        const std::size_t length = problem_.length(i);
        paths_.find(flow_, problem_.first(i), length, 0, length, augmented, w_.data(), n_labels_);
        paths_.trace(pair_.better, pair_.worse);
    }

    double swap_segments(std::size_t i, double* scores, const double* gram, double* change) {
        const std::size_t length = problem_.length(i);
        return pair_.for_segments({problem_.first(i), length, 0, length},
                                  [&](const Segment& segment) { return swap(i, segment, scores, gram, change); });
    }

    SwapLine measure(std::size_t i, const Segment& segment, const double* scores, const double* gram) {
        const std::vector<std::uint32_t>&up = pair_.better, &down = pair_.worse;
        SwapLine line;
        const double* augmented = augment(i, scores, w_.data());
        for (std::size_t t = segment.begin; t < segment.end; ++t) {
            line.slope += augmented[t * n_labels_ + up[t]] - augmented[t * n_labels_ + down[t]];
            for (std::size_t v = segment.begin; v < segment.end; ++v) {
                const int same = (up[t] == up[v]) + (down[t] == down[v]) - (up[t] == down[v]) - (down[t] == up[v]);
                if (same != 0) line.square += same * gram[t * segment.length + v];
            }
        }
        pair_.for_cliques(segment, mask_, n_labels_, [&](std::size_t clique, double sign) {
            line.slope += sign * w_[clique];
            clique_change_[clique] += sign;
        });
        pair_.for_cliques(segment, mask_, n_labels_, [&](std::size_t clique, double) {
            line.square += rate_ * clique_change_[clique] * clique_change_[clique];
            clique_change_[clique] = 0.0;
        });
        if (chain_.with_ends()) line.square += 2.0 * rate_ * ((segment.begin == 0) + (segment.end == segment.length));
        return line;
    }

    // At the ends of the segment the labellings agree.
    double swap(std::size_t i, const Segment& segment, double* scores, const double* gram, double* change) {
        const SwapLine line = measure(i, segment, scores, gram);
        const double step = pair_.step(flow_, segment, line, problem_.weights[i]);
        if (!(step > 0.0)) return 0.0;
        const double by = problem_.weights[i] * step;
        pair_.move(flow_, segment, step);
        for (std::size_t t = segment.begin; t < segment.end; ++t) {
            const std::uint32_t up = pair_.better[t], down = pair_.worse[t];
            change[t * n_labels_ + up] -= by;
            change[t * n_labels_ + down] += by;
            add_ends(i, t, up, -by);
            add_ends(i, t, down, by);
            for (std::size_t v = 0; v < segment.length; ++v) {
                scores[v * n_labels_ + up] -= by * gram[t * segment.length + v];
                scores[v * n_labels_ + down] += by * gram[t * segment.length + v];
            }
        }
        pair_.for_cliques(segment, mask_, n_labels_,
                          [&](std::size_t clique, double sign) { w_[clique] -= rate_ * by * sign; });
        return line.gain(by);
    }

    const ChainStructure& chain_;
    ChainBlock block_;
    ChainFlow flow_;
    FlowPaths paths_;
    std::vector<double> clique_change_;
    LabellingPair pair_;
    std::vector<std::int32_t> viterbi_;
};

}  // namespace

std::unique_ptr<DualBlocks> kernel_flows(const Problem& problem, double scale) {
    return std::make_unique<KernelFlows>(problem, scale);
}

}  // namespace dualfield
