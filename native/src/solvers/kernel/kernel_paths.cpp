// Kernel scores and hinge losses on any structure: mixtures of labellings, as in path_blocks.cpp.
//
// The scores of all labels are at hand, so that the best labelling comes from all of them at each visit.
#include <algorithm>
#include <vector>

#include "../dual/labelling_mixture.hpp"
#include "../dual/parts_of_one.hpp"
#include "kernel_parts.hpp"
#include "kernel_proof.hpp"

namespace dualfield {
namespace {

constexpr int kMostSteps = 20;
constexpr double kSolved = 0.1;  // steps go on until this share of the gap is left
constexpr double kNoSlope = 1e-13;

class KernelPaths final : public KernelParts {
  public:
    KernelPaths(const Problem& problem, double scale, bool with_nodes)
        : KernelParts(problem, scale, with_nodes), block_(problem.structure->block()), shared_change_(n_shared_, 0.0) {
        for (std::size_t i = 0; i < problem.n_examples(); ++i)
            mixtures_.emplace_back(problem.truth(i), problem.length(i));
    }

    bool wants_mean() const override { return true; }

    double visit(std::size_t i, double* scores, const double* gram, double* change) override {
        LabellingMixture& mixture = mixtures_[i];
        double gain = 0.0, first_gap = 0.0;
        for (int step = 0; step < kMostSteps; ++step) {
            const double* augmented = augment(i, scores);
            // All labels at every other step, those with mass in between.
            if (step % 2 == 0) {
                best_labelling(i, augmented, w_.data());
                mixture.find(labels_);
            }
            look(i, mixture, augmented, w_.data());
            const std::size_t better = mixture.best(), worse = mixture.worst();
            const double gap = mixture.all()[better].score - mixture.mean();
            if (step == 0) first_gap = gap;
            if (!(gap > kSolved * first_gap) && step % 2 == 0) break;
            const double gained = swap(i, mixture, better, worse, scores, gram, change);
            if (!(gained > 0.0) && step % 2 == 0) break;
            gain += gained;
        }
        mixture.tidy();
        return gain;
    }

    double gap(std::size_t i, const double* scores) override {
        const double* augmented = augment(i, scores);
        const double maximum = best_labelling(i, augmented, w_.data());
        look(i, mixtures_[i], augmented, w_.data());
        return problem_.weights[i] * std::max(maximum - mixtures_[i].mean(), 0.0);
    }

    double loss(std::size_t i, const double* scores, const double* weights) override {
        const double* augmented = augment(i, scores);
        const double maximum = best_labelling(i, augmented, weights);
        const std::int32_t* truth = problem_.truth(i);
        const std::vector<std::int32_t> labels(truth, truth + problem_.length(i));
        return problem_.weights[i] * std::max(maximum - score_of(i, augmented, weights, labels), 0.0);
    }

    double settle(std::size_t i, double* out) override {
        const double weight = problem_.weights[i];
        std::fill_n(out, n_scores(i), 0.0);
        mixtures_[i].tidy();
        double cost = 0.0;
        for (const MixedLabelling& one : mixtures_[i].all()) {
            add(i, one.labels, -weight * one.mass, out);
            for (std::size_t t = 0; problem_.cost && t < one.labels.size(); ++t)
                cost += one.mass * problem_.cost[label(i, t) * n_labels_ + static_cast<std::size_t>(one.labels[t])];
        }
        const std::int32_t* truth = problem_.truth(i);
        add(i, {truth, truth + problem_.length(i)}, weight, out);
        return weight * cost;
    }

  private:
    std::size_t label(std::size_t i, std::size_t t) const { return static_cast<std::size_t>(problem_.truth(i)[t]); }

    // Mass at the parts of a labelling: at those that kernels score into out, at shared parts into the weights.
    void add(std::size_t i, const std::vector<std::int32_t>& labels, double mass, double* out) {
        problem_.structure->list_parts(i, labels.data(), parts_);
        for (std::size_t g = 0; g < n_tables(); ++g)
            for (const std::int32_t part : parts_.own[first_table_ + g]) {
                if (part >= 0) out[part] += mass;
                out += width(g);
            }
        for (const std::int32_t part : parts_.shared) w_[static_cast<std::size_t>(part)] += rate_ * mask_[part] * mass;
    }
    double score_of(std::size_t i, const double* augmented, const double* weights,
                    const std::vector<std::int32_t>& labels) {
        problem_.structure->list_parts(i, labels.data(), parts_);
        return problem_.structure->Structure::score_parts(
            i, view_of_one(layout_, i, {augmented, weights}),
            {{parts_.own[0], parts_.own[1], parts_.own[2]}, parts_.shared});
    }
    void look(std::size_t i, LabellingMixture& mixture, const double* augmented, const double* weights) {
        for (MixedLabelling& one : mixture.all()) one.score = score_of(i, augmented, weights, one.labels);
    }
    // Into labels_; returns its score.
    double best_labelling(std::size_t i, const double* augmented, const double* weights) {
        labels_.resize(problem_.length(i));
        const auto answer = block_->best(i, view_of_one(layout_, i, {augmented, weights}), labels_.data());
        if (answer.status == Status::bad_number) require_finite(kInfinity);
        return answer.value;
    }

    double swap(std::size_t i, LabellingMixture& mixture, std::size_t better, std::size_t worse, double* scores,
                const double* gram, double* change) {
        const double slope = mixture.all()[better].score - mixture.all()[worse].score;
        if (!(slope > kNoSlope)) return 0.0;
        const auto count = [&](const std::vector<std::int32_t>& labels, double sign, PartList& parts) {
            problem_.structure->list_parts(i, labels.data(), parts);
            for (const std::int32_t part : parts.shared)
                shared_change_[static_cast<std::size_t>(part)] += sign * mask_[part];
        };
        count(mixture.all()[better].labels, 1.0, parts_);
        count(mixture.all()[worse].labels, -1.0, worse_parts_);
        double square = 0.0;
        const double* values = gram;
        for (std::size_t g = 0; g < n_tables(); ++g) {
            const std::vector<std::int32_t>&up = parts_.own[first_table_ + g],
                  &down = worse_parts_.own[first_table_ + g];
            const std::size_t m = up.size();
            for (std::size_t t = 0; t < m; ++t) {
                if (up[t] == down[t]) continue;
                for (std::size_t v = 0; v < m; ++v) {
                    const int same = (up[t] == up[v]) + (down[t] == down[v]) - (up[t] == down[v]) - (down[t] == up[v]);
                    if (up[v] != down[v] && same != 0) square += same * values[t * m + v];
                }
            }
            values += m * m;
        }
        for (const double by : shared_change_) square += rate_ * by * by;
        const double weight = problem_.weights[i];
        double step = mixture.all()[worse].mass;
        if (square > 0.0) step = std::min(step, slope / (weight * square));
        const double by = weight * step;
        for (std::size_t g = 0; g < n_tables(); ++g) {
            const std::vector<std::int32_t>&up = parts_.own[first_table_ + g],
                  &down = worse_parts_.own[first_table_ + g];
            const std::size_t m = up.size(), width = this->width(g);
            for (std::size_t t = 0; t < m; ++t) {
                if (up[t] == down[t]) continue;
                const auto to = static_cast<std::size_t>(up[t]), from = static_cast<std::size_t>(down[t]);
                change[t * width + to] -= by;
                change[t * width + from] += by;
                for (std::size_t v = 0; v < m; ++v) {
                    scores[v * width + to] -= by * gram[t * m + v];
                    scores[v * width + from] += by * gram[t * m + v];
                }
            }
            change += m * width;
            scores += m * width;
            gram += m * m;
        }
        for (std::size_t c = 0; c < n_shared_; ++c) {
            w_[c] -= rate_ * by * shared_change_[c];
            shared_change_[c] = 0.0;
        }
        mixture.move(worse, better, step);
        return by * (slope - 0.5 * by * square);
    }

    std::unique_ptr<Block> block_;
    std::vector<LabellingMixture> mixtures_;
    std::vector<double> shared_change_;
    std::vector<std::int32_t> labels_;
    PartList parts_, worse_parts_;
};

}  // namespace

std::unique_ptr<DualBlocks> kernel_paths(const Problem& problem, double scale, bool with_nodes) {
    return std::make_unique<KernelPaths>(problem, scale, with_nodes);
}

}  // namespace dualfield
