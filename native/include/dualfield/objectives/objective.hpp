// Losses of the examples of a problem and their gradients.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/objectives/problem.hpp"

namespace dualfield {

// The scores of a few examples in a row, computed into memory that is reused.
class ChunkScores {
  public:
    explicit ChunkScores(const Problem& problem) : problem_(problem) {}

    // Scores of some examples under the parameters scale * w, with the cost of wrong labels, if there is one and it is
    // asked for. They are divided by the scale, and the structure multiplies with it.
    const ScoreView& compute(const double* w, double scale, Examples examples, bool with_cost);
    // Forbids what partly labelled examples may not have.
    void forbid(Examples examples);
    // Of one of the examples.
    ScoreView of(std::size_t example) const;
    const ScoreView& view() const { return view_; }

  private:
    const Problem& problem_;
    std::array<Buffer, kMostTables> own_;
    Buffer shared_, scratch_;
    ScoreView view_;
    std::size_t first_ = 0;
};

// The examples cut into runs that are computed together: long enough to fill the vectors, short enough for the caches.
std::vector<std::size_t> cut_into_chunks(const Problem& problem);

// A vector that takes factor * gradient.
struct GradientTarget {
    double* vector;
    double factor;
};

// The same bits for every number of threads.
class Objective {
  public:
    // The problem must outlive the objective.
    Objective(const Problem& problem, std::size_t n_threads);

    // sum_i c_i loss_i; NaN where the scores are not finite.
    double loss(const double* w);
    // Shown while losses are computed: the scores of an example with the cost of wrong labels, and their maximum, on
    // one of the threads.
    using SeeScores =
        std::function<void(std::size_t thread, std::size_t example, const ScoreView& scores, double maximum)>;
    // loss_i of every example [n], without c_i.
    void losses(const double* w, double* out, const SeeScores& see = {});
    // The same, and its gradient [size].
    struct Doubt {
        double magnitude = 0.0;  // sum_i c_i (|maximum| + |score of the truth|), of which rounding takes its share
        double slack = 0.0;      // sum_i c_i times that of the structure, as scores are: 0 unless it is a relaxation
    };
    double loss_and_gradient(const double* w, double* gradient, Doubt* doubt = nullptr);

    // The second derivatives sum_i c_i A_i' Cov_i A_i / T of the losses: times a vector, product [size], and by
    // the weights at some places, which rise, as the mean over some points: hessian [places][places]. See hessian.cpp.
    // Throws std::invalid_argument where the temperature is zero or the structure does not answer; false where the
    // scores are not finite.
    bool hessian_product(const double* w, const double* v, double* product);
    bool hessian(std::span<const double* const> points, std::span<const std::int64_t> places, double* hessian);

    // What one thread computes with.
    struct Worker {
        explicit Worker(const Problem& problem) : chunk(problem) {}
        ChunkScores chunk;
        std::array<Buffer, kMostTables> own;  // marginals, laid out as scores are
        Buffer shared, maxima, slacks, scratch;
        std::vector<Status> statuses;
        Doubt doubt;  // so far
        std::vector<std::int32_t> labels;
    };
    // The loss of some examples at the parameters scale * w; its gradient is added to the targets, which may be w
    // itself.
    double add(Worker& worker, const double* w, double scale, Examples examples,
               std::span<const GradientTarget> targets) const;

    // Adds c_i times the features of a labelling [length] minus those of the truth to the targets.
    void add_difference(Worker& worker, std::size_t example, const std::int32_t* labels,
                        std::span<const GradientTarget> targets) const;

    Worker worker() const { return Worker(problem_); }
    const Truth& truth() const { return truth_; }

  private:
    // T log Z, or where T is zero the maximum, of the scores in the worker's chunk, into worker.maxima; with marginals,
    // or the indicator of the best labelling, in the worker if they are asked for. False where a number is not finite.
    bool maximise(Worker& worker, Examples examples, bool with_marginals) const;
    PartSums require_sums(Worker& worker, Examples examples) const;
    PartSums sums_of(Worker& worker, Examples examples, std::size_t example) const;
    void indicate(Worker& worker, Examples examples) const;
    class Curvature;
    void add_gradient(Worker& worker, Examples examples, const GradientTarget& target) const;
    std::vector<Worker> workers() const;
    // out [size] = the sum over shards, in their order, of what body(worker, shard, vector [size]) adds to zeros.
    void sum_shards(double* out,
                    const std::function<void(std::size_t worker, std::size_t shard, double* vector)>& body) const;

    const Problem& problem_;
    std::size_t n_threads_;
    std::vector<std::size_t> chunks_;  // first example of each chunk, and the end
    std::vector<std::size_t> shards_;  // first chunk of each shard, and the end
    Truth truth_;
};

// The best labelling of every example; with the cost of wrong labels if it is asked for.
void tag(const Problem& problem, const double* w, std::size_t n_threads, bool with_cost, std::int32_t* labels);
// The scores of the own parts of all examples, table by table.
void score_own(const Problem& problem, const double* w, std::size_t n_threads,
               const std::array<double*, kMostTables>& own);

}  // namespace dualfield
