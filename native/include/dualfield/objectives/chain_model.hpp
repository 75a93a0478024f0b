// A chain whose scores are linear in a vector of parameters, and the data it is fitted to.
//
//   minimise over w   R(w) + sum_i c_i [ M_T(A_i w + D_i) - <A_i w, u_i> ]
//
// A_i w are node scores, by the features of each node, and clique scores: one weight for each clique, and where there
// is a pair map, also by the features of the node that an edge leads to. D_i is the cost of each wrong label.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "dualfield/scores/linear_map.hpp"
#include "dualfield/structures/chain.hpp"

namespace dualfield {

struct ChainModel {
    const ChainTopology* topology = nullptr;
    const LinearMap* node = nullptr;       // null where node scores come from a kernel
    const LinearMap* pair = nullptr;       // from features to cliques; may be null
    const double* clique_mask = nullptr;   // [n_cliques]: 1 where a clique has a weight, 0 where it scores nothing
    bool with_ends = false;                // weights for the first and the last label
    const double* start_limits = nullptr;  // [K]: 0, or -inf for a label that may not stand first; may be null
    const double* stop_limits = nullptr;   // the same for the last one

    // The vector of parameters: weights of the node map, of the pair map, of cliques [n_cliques], start and stop [K].
    std::size_t pair_begin() const { return node ? node->size() : 0; }
    std::size_t clique_begin() const { return pair_begin() + (pair ? pair->size() : 0); }
    std::size_t start_begin() const { return clique_begin() + topology->n_cliques(); }
    std::size_t stop_begin() const { return start_begin() + (with_ends ? topology->n_labels() : 0); }
    std::size_t size() const { return stop_begin() + (with_ends ? topology->n_labels() : 0); }
};

struct ChainData {
    std::span<const std::int64_t> offsets;  // [n + 1]
    FeatureRows rows, pair_rows;            // a row for each node
    const std::int32_t* labels = nullptr;   // [N]; null for prediction
    const double* weights = nullptr;        // [n]: c_i
    const double* cost = nullptr;           // [K][K], true label first, zeros on the diagonal; may be null
    const std::uint8_t* allowed = nullptr;  // [N][K]: which labels a partly labelled node may have; may be null
    double temperature = 1.0;               // 0: the maximum itself, the hinge

    std::size_t n_examples() const { return offsets.size() - 1; }
    std::size_t n_nodes() const { return static_cast<std::size_t>(offsets.back()); }
    std::size_t first(std::size_t example) const { return static_cast<std::size_t>(offsets[example]); }
    std::size_t length(std::size_t example) const {
        return static_cast<std::size_t>(offsets[example + 1] - offsets[example]);
    }
};

// The cliques of the true labels.
class ChainTruth {
  public:
    // Throws std::invalid_argument, naming the example, where a true labelling is forbidden. Partly labelled examples
    // have no cliques.
    ChainTruth(const ChainModel& model, const ChainData& data);

    std::int64_t first_edge(std::size_t example) const { return first_edge_[example]; }
    // Index of the clique at an edge.
    std::size_t clique(std::int64_t edge) const {
        return static_cast<std::size_t>(cliques_[static_cast<std::size_t>(edge)]);
    }
    // Adds `mass` at the cliques of an example to sums [n_cliques].
    template <class S>
    void add(std::size_t example, S mass, S* sums) const {
        for (std::int64_t e = first_edge_[example]; e < first_edge_[example + 1]; ++e) sums[clique(e)] += mass;
    }

  private:
    void check(const ChainModel& model, const ChainData& data) const;

    std::vector<std::int64_t> cliques_, first_edge_;  // [E], [n + 1]
};

// Node features by way of a plan where one was made, else as they are.
class NodeFeatures {
  public:
    NodeFeatures(const ChainModel& model, const ChainData& data, bool with_plan);

    void score(const double* w, std::size_t first, std::size_t last, double* out, double* scratch) const;
    // w += scale * features' d; returns how much |w|^2 / 2 grows.
    double add(const double* d, double scale, std::size_t first, std::size_t last, double* w, double* scratch) const;

    // Asks for the plan of rows that will be needed soon.
    void prefetch(std::size_t first, std::size_t last) const {
        if (plan_) plan_->prefetch(first, last);
    }
    const FeaturePlan* plan() const { return plan_ ? &*plan_ : nullptr; }

  private:
    const LinearMap& map_;
    const FeatureRows& rows_;
    std::optional<FeaturePlan> plan_;
};

// The scores of a few examples in a row, computed into memory that is reused.
class ChunkScores {
  public:
    ChunkScores(const ChainModel& model, const ChainData& data, const NodeFeatures& features)
        : model_(model), data_(data), features_(features) {}

    // Scores of the examples [first, last) under the parameters scale * w, with the cost of wrong labels, if there is
    // one and it is asked for. They are divided by the scale, and the oracle multiplies with it.
    const ChainScores& compute(const double* w, double scale, std::size_t first, std::size_t last, bool with_cost);
    // Forbids the labels that partly labelled nodes may not have.
    void forbid(std::size_t first, std::size_t last);

    double* node() { return node_.data(); }  // [nodes][K]
    std::size_t n_nodes() const { return scores_.n_nodes(); }
    std::size_t n_edges() const { return static_cast<std::size_t>(edge_offsets_.back()); }

  private:
    const double* end_scores(const double* w, const double* limits, Buffer& out) const;

    const ChainModel& model_;
    const ChainData& data_;
    const NodeFeatures& features_;
    std::vector<std::int64_t> offsets_, edge_offsets_;
    Buffer node_, edges_, scratch_, start_, stop_;
    ChainScores scores_;
};

// Memory for each of n threads.
template <class Worker>
std::vector<Worker> one_for_each(std::size_t n_threads, const ChainModel& model, const ChainData& data,
                                 const NodeFeatures& features) {
    std::vector<Worker> workers;
    workers.reserve(n_threads);
    for (std::size_t i = 0; i < std::max<std::size_t>(n_threads, 1); ++i) workers.emplace_back(model, data, features);
    return workers;
}

// The examples cut into runs that are computed together: long enough to fill the vectors, short enough for the caches.
std::vector<std::size_t> cut_into_chunks(const ChainModel& model, const ChainData& data);

// A vector that takes factor * gradient.
struct GradientTarget {
    double* vector;
    double factor;
};

// Losses of the examples and their gradients; the same bits for every number of threads.
class ChainObjective {
  public:
    ChainObjective(const ChainModel& model, const ChainData& data, std::size_t n_threads);

    // sum_i c_i loss_i; NaN where the scores are not finite.
    double loss(const double* w);
    // Shown while losses are computed: the node scores of an example [length][K] with the cost of wrong labels and
    // without the weights of its ends, and their maximum, on one of the threads.
    using SeeScores = std::function<void(std::size_t thread, std::size_t example, const double* node, double maximum)>;
    // loss_i of every example [n], without c_i.
    void losses(const double* w, double* out, const SeeScores& see = {});
    // The same, and its gradient [size].
    // `magnitude`, if given: sum_i c_i (|maximum| + |score of the truth|), of which rounding takes its share.
    double loss_and_gradient(const double* w, double* gradient, double* magnitude = nullptr);

    // What one thread computes with.
    struct Worker {
        Worker(const ChainModel& model, const ChainData& data, const NodeFeatures& features)
            : chunk(model, data, features) {}
        ChunkScores chunk;
        Buffer nodes, cliques, maxima, scratch;
        double magnitude = 0.0;  // of what was subtracted from each other so far
        std::vector<std::int32_t> labels;
        std::vector<std::int64_t> chosen;
    };
    // The loss of the examples [first, last) at the parameters scale * w; its gradient is added to the targets, which
    // may be w itself.
    double add(Worker& worker, const double* w, double scale, std::size_t first, std::size_t last,
               std::span<const GradientTarget> targets) const;

    // Adds c_i times the features of a labelling [length] minus those of the truth to the targets.
    void add_difference(Worker& worker, std::size_t example, const std::int32_t* labels,
                        std::span<const GradientTarget> targets) const;

    Worker worker() const { return {model_, data_, features_}; }
    const NodeFeatures& features() const { return features_; }
    const ChainTruth& truth() const { return truth_; }

  private:
    // T log Z, or where T is zero the maximum, of the scores in the worker's chunk, into worker.maxima; with marginals,
    // or the indicator of the best labelling, in worker.nodes and worker.cliques if they are asked for. False where a
    // number is not finite.
    bool maximise(Worker& worker, const ChainScores& scores, std::size_t first, bool with_marginals) const;
    void indicate(Worker& worker, const ChainScores& scores) const;
    void subtract_truth(Worker& worker, std::size_t first, std::size_t last) const;
    void add_gradient(Worker& worker, std::size_t first, std::size_t last, const GradientTarget& target) const;
    double true_score(const ChainScores& scores, std::size_t example, std::size_t local) const;

    const ChainModel& model_;
    const ChainData& data_;
    NodeFeatures features_;
    std::size_t n_threads_;
    std::vector<std::size_t> chunks_;  // first example of each chunk, and the end
    std::vector<std::size_t> shards_;  // first chunk of each shard, and the end
    ChainTruth truth_;
};

// The best labelling of every example, [N]; with the cost of wrong labels if it is asked for.
void tag(const ChainModel& model, const ChainData& data, const double* w, std::size_t n_threads, bool with_cost,
         std::int32_t* labels);
// node [N][K] and, where there is a pair map, edges [E][n_cliques]: the scores themselves, without those of the ends.
void score_nodes(const ChainModel& model, const ChainData& data, const double* w, std::size_t n_threads, double* node,
                 double* edges);

}  // namespace dualfield
