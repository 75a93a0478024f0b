// Chains with kernel scores and hinge losses: swaps of mass between labellings, as in segment_swap.hpp.
//
// The scores of all labels are at hand, so that the best labelling comes from all of them at each visit. A swap moves
// mass from the worst labelling that has some to the best one, on one segment of nodes where they differ at a time; its
// curvature is that of the kernels between the nodes, and the edges, of the segment and of the weights of its cliques.
#include <algorithm>
#include <vector>

#include "../dual/chain_flow.hpp"
#include "../dual/flow_paths.hpp"
#include "../dual/segment_swap.hpp"
#include "dualfield/structures/chains/chain.hpp"
#include "dualfield/structures/chains/chain_block.hpp"
#include "kernel_parts.hpp"
#include "kernel_proof.hpp"

namespace dualfield {
namespace {

constexpr int kMostRounds = 6;
constexpr double kSolved = 0.1;  // rounds go on until this share of the gap is left

class KernelFlows final : public KernelParts {
  public:
    KernelFlows(const Problem& problem, double scale, bool with_nodes)
        : KernelParts(problem, scale, with_nodes),
          chain_(*problem.structure->chain()),
          block_(chain_.topology(), chain_.start_limits(), chain_.stop_limits()),
          edge_block_(chain_.with_edges() ? problem.structure->block() : nullptr),
          cliques_(n_shared_, 0.0),
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
        std::fill_n(out, n_scores(i), 0.0);
        double* edges = out + n_node_scores(i);
        flow_.for_difference(i, [&](std::size_t t, std::uint32_t from, std::uint32_t to, double mass) {
            const double by = weight * mass;
            if (scores_nodes()) out[t * n_labels_ + to] += by;
            if (t > 0) add_clique(from, to, by);
            if (t > 0 && chain_.with_edges()) edges[(t - 1) * n_pairs() + from * n_labels_ + to] += by;
            add_ends(i, t, to, by);
        });
        return weight * flow_.expected_cost(i);
    }

  private:
    bool scores_nodes() const { return first_table_ == 0; }
    std::size_t n_pairs() const { return n_labels_ * n_labels_; }
    // Scores of the nodes of an example that come from a kernel; those of its edges follow.
    std::size_t n_node_scores(std::size_t i) const { return scores_nodes() ? problem_.length(i) * n_labels_ : 0; }
    // Among augmented scores, those of edges [length - 1][n_labels][n_labels]; null if they have none.
    const double* edges_of(std::size_t i, const double* augmented) const {
        return chain_.with_edges() ? augmented + problem_.length(i) * n_labels_ : nullptr;
    }
    // What a transition to node t scores.
    double step(std::size_t t, std::size_t clique, const double* edges, const double* weights) const {
        return edges ? weights[clique] + edges[(t - 1) * n_pairs() + clique] : weights[clique];
    }

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
        const double* edges = edges_of(i, augmented);
        double total = 0.0;
        for (std::size_t t = 0; t < problem_.length(i); ++t) total += augmented[t * n_labels_ + flow_.truth(i, t)];
        for (std::size_t t = 1; t < problem_.length(i); ++t)
            total += step(t, flow_.truth(i, t - 1) * n_labels_ + flow_.truth(i, t), edges, weights);
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
        if (const double* edges = edges_of(i, augmented)) {
            // The weights of the ends are in the scores of the nodes.
            std::copy_n(weights, n_pairs(), cliques_.begin());
            const auto answer =
                edge_block_->best(i, {.own = {augmented, edges}, .shared = cliques_.data()}, viterbi_.data());
            if (answer.status == Status::bad_number) require_finite(kInfinity);
            return answer.value;
        }
        const auto answer = block_.best(augmented, problem_.length(i), weights, viterbi_.data());
        if (answer.status == Status::bad_number) require_finite(kInfinity);
        return answer.log_partition;
    }
    // The mean score under the flow.
    double mean(std::size_t i, const double* augmented) const {
        const double* edges = edges_of(i, augmented);
        double sum = 0.0;
        for (std::size_t t = 0; t < problem_.length(i); ++t)
            for (const FlowEdge& edge : flow_.edges(problem_.first(i) + t))
                sum += edge.mass * (augmented[t * n_labels_ + edge.to] +
                                    (t > 0 ? step(t, edge.from * n_labels_ + edge.to, edges, w_.data()) : 0.0));
        return sum;
    }
    // The best and the worst labelling that have mass.
    void find_support(std::size_t i, const double* augmented) {
        const std::size_t length = problem_.length(i);
        paths_.find(flow_, problem_.first(i), length, 0, length, augmented, w_.data(), n_labels_, nullptr, nullptr,
                    edges_of(i, augmented));
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
            for (std::size_t v = segment.begin; scores_nodes() && v < segment.end; ++v) {
                const int same = (up[t] == up[v]) + (down[t] == down[v]) - (up[t] == down[v]) - (down[t] == up[v]);
                if (same != 0) line.square += same * gram[t * segment.length + v];
            }
        }
        if (chain_.with_edges()) measure_edges(segment, edges_of(i, augmented), edge_gram(i, gram), line);
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

    // Kernel values between the edges of an example, [length - 1][length - 1], follow those between nodes.
    const double* edge_gram(std::size_t i, const double* gram) const {
        return gram + (scores_nodes() ? problem_.length(i) * problem_.length(i) : 0);
    }
    // The cliques of the edge to node t under the two labellings.
    std::size_t better_pair(std::size_t t) const { return pair_.better[t - 1] * n_labels_ + pair_.better[t]; }
    std::size_t worse_pair(std::size_t t) const { return pair_.worse[t - 1] * n_labels_ + pair_.worse[t]; }

    void measure_edges(const Segment& segment, const double* edges, const double* gram, SwapLine& line) const {
        const std::size_t first = std::max<std::size_t>(segment.begin, 1), last = segment.last_edge();
        for (std::size_t t = first; t <= last; ++t) {
            const std::size_t up = better_pair(t), down = worse_pair(t);
            line.slope += edges[(t - 1) * n_pairs() + up] - edges[(t - 1) * n_pairs() + down];
            for (std::size_t v = first; v <= last; ++v) {
                const std::size_t up_there = better_pair(v), down_there = worse_pair(v);
                const int same = (up == up_there) + (down == down_there) - (up == down_there) - (down == up_there);
                if (same != 0) line.square += same * gram[(t - 1) * (segment.length - 1) + v - 1];
            }
        }
    }
    void move_edges(const Segment& segment, double by, double* scores, const double* gram, double* change) const {
        const std::size_t n_edges = segment.length - 1;
        for (std::size_t t = std::max<std::size_t>(segment.begin, 1); t <= segment.last_edge(); ++t) {
            const std::size_t up = better_pair(t), down = worse_pair(t);
            change[(t - 1) * n_pairs() + up] -= by;
            change[(t - 1) * n_pairs() + down] += by;
            for (std::size_t e = 0; e < n_edges; ++e) {
                scores[e * n_pairs() + up] -= by * gram[(t - 1) * n_edges + e];
                scores[e * n_pairs() + down] += by * gram[(t - 1) * n_edges + e];
            }
        }
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
            add_ends(i, t, up, -by);
            add_ends(i, t, down, by);
            if (!scores_nodes()) continue;
            change[t * n_labels_ + up] -= by;
            change[t * n_labels_ + down] += by;
            for (std::size_t v = 0; v < segment.length; ++v) {
                scores[v * n_labels_ + up] -= by * gram[t * segment.length + v];
                scores[v * n_labels_ + down] += by * gram[t * segment.length + v];
            }
        }
        if (chain_.with_edges())
            move_edges(segment, by, scores + n_node_scores(i), edge_gram(i, gram), change + n_node_scores(i));
        pair_.for_cliques(segment, mask_, n_labels_,
                          [&](std::size_t clique, double sign) { w_[clique] -= rate_ * by * sign; });
        return line.gain(by);
    }

    const ChainStructure& chain_;
    ChainBlock block_;
    std::unique_ptr<Block> edge_block_;  // where edges have scores
    std::vector<double> cliques_;
    ChainFlow flow_;
    FlowPaths paths_;
    std::vector<double> clique_change_;
    LabellingPair pair_;
    std::vector<std::int32_t> viterbi_;
};

}  // namespace

std::unique_ptr<DualBlocks> kernel_flows(const Problem& problem, double scale, bool with_nodes) {
    return std::make_unique<KernelFlows>(problem, scale, with_nodes);
}

}  // namespace dualfield
