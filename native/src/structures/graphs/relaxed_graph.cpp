#include "dualfield/structures/graphs/relaxed_graph.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "../passes.hpp"
#include "forest_bound.hpp"
#include "forests.hpp"

namespace dualfield {

RelaxedGraphStructure::RelaxedGraphStructure(std::size_t n_labels, std::span<const std::int64_t> offsets,
                                             const std::int32_t* edges, std::span<const std::int64_t> edge_offsets,
                                             const Options& options, const Accuracy& accuracy)
    : GraphParts(n_labels, offsets, edges, edge_offsets, options), accuracy_(accuracy) {
    if (options.limits)
        throw std::invalid_argument(
            "Pairs of labels that are forbidden need inference='exact': a relaxation would give them a share.");
    if (!has_pairs_only())
        throw std::invalid_argument("Edges of more than two nodes need exact answers: forests are made of pairs.");
    for (const std::size_t i : first_of_shape_)
        forests_.push_back(std::make_unique<const Forests>(cut_into_forests(length(i), edges_of(i), n_edges(i))));
}

RelaxedGraphStructure::~RelaxedGraphStructure() = default;

std::size_t RelaxedGraphStructure::n_forests(std::size_t example) const {
    return forests_[shape_of_[example]]->count;
}

// Sweeps over one example at a time, in memory that is reused.
class RelaxedGraphStructure::Pass {
  public:
    explicit Pass(const RelaxedGraphStructure& graph) : graph_(graph), n_(graph.n_labels_) {}

    // Takes the scores of an example from a view whose first example is `from`.
    void begin(std::size_t example, std::size_t from, const ScoreView& view) {
        example_ = example;
        forests_ = graph_.forests_[graph_.shape_of_[example]].get();
        const ScoreView own = graph_.view_of(example, from, view);
        const std::size_t n_nodes = graph_.length(example), n_edges = graph_.n_edges(example), size = n_ * n_;
        double* nodes = nodes_.require(std::max<std::size_t>(n_nodes * n_, 1));
        status_ = Status::ok;
        for (std::size_t v = 0; v < n_nodes; ++v) {
            double top = -kInfinity;
            for (std::size_t j = v * n_; j < (v + 1) * n_; ++j) {
                nodes[j] = own.inverse_temperature * own.own[0][j];
                if (!(nodes[j] < kInfinity)) status_ = Status::bad_number;
                top = std::max(top, nodes[j]);
            }
            if (top == -kInfinity && status_ == Status::ok) status_ = Status::impossible;
        }
        // A table for each type, or where edges have scores of their own for each edge.
        const double* of_edges = graph_.options_.with_edges ? own.own[1] : nullptr;
        const std::size_t n_tables = of_edges ? n_edges : graph_.options_.n_types;
        double* pairs = pairs_.require(std::max<std::size_t>(n_tables * size, 1));
        types_.resize(n_edges);
        for (std::size_t e = 0; e < n_edges; ++e)
            types_[e] = static_cast<std::int32_t>(graph_.type_of(graph_.first_edge(example) + e));
        for (std::size_t t = 0; t < n_tables; ++t) {
            const double* shared = own.shared ? own.shared + (of_edges ? index(types_[t]) : t) * size : nullptr;
            for (std::size_t j = 0; j < size; ++j) {
                const double score = (shared ? shared[j] : 0.0) + (of_edges ? of_edges[t * size + j] : 0.0);
                pairs[t * size + j] = own.inverse_temperature * score;
                if (!std::isfinite(pairs[t * size + j])) status_ = Status::bad_number;
            }
        }
        scores_ = {nodes, pairs, of_edges ? nullptr : types_.data(), n_tables};
    }

    // Until bounds from above and from below meet.
    void up_sum() {
        total_ = slack_ = 0.0;
        if (status_ != Status::ok || forests_->n_nodes == 0) return;
        const std::size_t n_edges = graph_.n_edges(example_);
        double* nodes = beliefs_.require(forests_->n_nodes * n_);
        double* pairs = pair_beliefs_.require(std::max<std::size_t>(n_edges * n_ * n_, 1));
        const double small = graph_.accuracy_.tolerance * static_cast<double>(forests_->n_nodes);
        bound_.begin<true>(*forests_, n_, scores_);
        total_ = kInfinity;
        std::size_t next_look = 1;
        for (std::size_t sweep = 1;; ++sweep) {
            const double before = total_;
            bound_.sweep<true>();
            total_ = std::min(total_, bound_.bound<true>());
            const bool is_last = sweep >= graph_.accuracy_.most_sweeps;
            // A look costs more than a sweep, and is in vain as long as the bound falls.
            if (!is_last && (sweep < next_look || before - total_ > small)) continue;
            slack_ = std::max(total_ - bound_.repair(nodes, pairs), 0.0);
            if (is_last || slack_ <= small) break;
            next_look = sweep + 1 + sweep / 4;
        }
        if (!(total_ < kInfinity)) status_ = Status::bad_number;
    }

    // Until a labelling reaches the bound, or the bound falls no more.
    void up_max() {
        total_ = 0.0;
        if (status_ != Status::ok || forests_->n_nodes == 0) return;
        bound_.begin<false>(*forests_, n_, scores_);
        bound_.forget_labels();
        total_ = kInfinity;
        std::size_t n_idle = 0;
        for (std::size_t sweep = 1; sweep <= kMostHardSweeps && n_idle < kPatience; ++sweep) {
            const double before = total_;
            bound_.sweep<false>();
            total_ = std::min(total_, bound_.bound<false>());
            const double small = kMet * (1.0 + std::abs(total_));
            if (total_ - bound_.best_score() <= small) break;
            n_idle = before - total_ <= small ? n_idle + 1 : 0;
        }
        total_ = std::max(total_, bound_.best_score());
        if (!(total_ < kInfinity)) status_ = Status::bad_number;
    }

    // After up_max: beliefs at a low temperature, where they are worth more than the best labelling; the slack goes
    // with the point. Both are in the local polytope.
    void up_point() {
        slack_ = 0.0;
        is_fractional_ = false;
        if (status_ != Status::ok || forests_->n_nodes == 0) return;
        const double bound = total_, labelling = bound - bound_.best_score();
        slack_ = std::max(labelling, 0.0);
        if (labelling <= kMet * (1.0 + std::abs(bound))) return;
        double highest = 0.0;
        const std::size_t n_scores = forests_->n_nodes * n_, n_pairs = scores_.n_tables * n_ * n_;
        for (std::size_t j = 0; j < n_scores; ++j) highest = std::max(highest, std::abs(nodes_.data()[j]));
        for (std::size_t j = 0; j < n_pairs; ++j) highest = std::max(highest, std::abs(pairs_.data()[j]));
        if (!(highest > 0.0 && highest < kInfinity)) return;
        const double sharpness = kSharpness / highest;
        for (std::size_t j = 0; j < n_scores; ++j) nodes_.data()[j] *= sharpness;
        for (std::size_t j = 0; j < n_pairs; ++j) pairs_.data()[j] *= sharpness;
        up_sum();
        const double fractional = bound - inner() / sharpness;
        total_ = bound;
        is_fractional_ = status_ == Status::ok && fractional < labelling;
        slack_ = std::max(is_fractional_ ? fractional : labelling, 0.0);
    }
    bool is_fractional() const { return is_fractional_; }

    double total() const { return total_; }
    double slack() const { return slack_; }
    Status status() const { return status_; }
    const std::vector<std::int32_t>& labels() const { return bound_.best(); }

    // The marginals after up_sum; edges and shared may be null.
    void spread(double* nodes, double* edges, double* shared) const {
        const std::size_t n_nodes = graph_.length(example_), n_edges = graph_.n_edges(example_), size = n_ * n_;
        if (shared) std::fill_n(shared, graph_.parts_.n_shared, 0.0);
        if (n_nodes == 0) return;
        std::copy_n(beliefs_.data(), n_nodes * n_, nodes);
        if (edges) std::copy_n(pair_beliefs_.data(), n_edges * size, edges);
        for (std::size_t e = 0; shared && e < n_edges; ++e)
            for (std::size_t j = 0; j < size; ++j)
                shared[index(types_[e]) * size + j] += pair_beliefs_.data()[e * size + j];
    }

  private:
    static constexpr std::size_t kMostHardSweeps = 1000, kPatience = 10;
    static constexpr double kSharpness = 100.0;  // the largest score beside the low temperature
    static constexpr double kMet = 1e-11;        // rounding apart, the bound is reached

    static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
    // <theta, mu> of the beliefs.
    double inner() const {
        double sum = 0.0;
        for (std::size_t j = 0; j < forests_->n_nodes * n_; ++j)
            if (beliefs_.data()[j] > 0.0) sum += beliefs_.data()[j] * nodes_.data()[j];
        for (std::size_t e = 0; e < graph_.n_edges(example_); ++e) {
            const std::size_t table = scores_.table_of ? index(scores_.table_of[e]) : e;
            for (std::size_t j = 0; j < n_ * n_; ++j)
                sum += pair_beliefs_.data()[e * n_ * n_ + j] * pairs_.data()[table * n_ * n_ + j];
        }
        return sum;
    }

    const RelaxedGraphStructure& graph_;
    const Forests* forests_ = nullptr;
    ForestBound bound_;
    std::size_t n_, example_ = 0;
    ForestBound::Scores scores_{};
    double total_ = 0.0, slack_ = 0.0;
    Status status_ = Status::ok;
    bool is_fractional_ = false;
    std::vector<std::int32_t> types_;
    Buffer nodes_, pairs_, beliefs_, pair_beliefs_;
};

void RelaxedGraphStructure::log_partition(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                          Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true,
                       [&](const Pass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

void RelaxedGraphStructure::maximum(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                    Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](const Pass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

void RelaxedGraphStructure::marginals(Examples examples, const ScoreView& view, std::size_t n_threads,
                                      const PartSums& sums, double* out, Status* statuses) const {
    double* edges = options_.with_edges ? sums.own[1] : nullptr;
    const std::size_t base_edge = first_edge(examples.first), size = n_labels_ * n_labels_;
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true,
                       [&](const Pass& pass, std::size_t i, std::size_t row) {
                           out[i] = pass.total();
                           if (sums.slack) sums.slack[i] = pass.slack();
                           pass.spread(sums.own[0] + row * n_labels_,
                                       edges ? edges + (first_edge(examples.first + i) - base_edge) * size : nullptr,
                                       sums.shared ? sums.shared + i * parts_.n_shared : nullptr);
                       });
}

void RelaxedGraphStructure::best_point(Examples examples, const ScoreView& view, std::size_t n_threads,
                                       const PartSums& sums, double* out, Status* statuses) const {
    const std::size_t base_edge = first_edge(examples.first), size = n_labels_ * n_labels_;
    for_examples<Pass>(
        *this, examples, view, n_threads, statuses, false, [&](Pass& pass, std::size_t i, std::size_t row) {
            const std::size_t example = examples.first + i;
            out[i] = pass.total();
            pass.up_point();
            if (sums.slack) sums.slack[i] = pass.slack();
            double* edges = options_.with_edges ? sums.own[1] + (first_edge(example) - base_edge) * size : nullptr;
            double *nodes = sums.own[0] + row * n_labels_, *shared = sums.shared + i * parts_.n_shared;
            if (pass.is_fractional())
                pass.spread(nodes, edges, shared);
            else
                indicate({example, example + 1}, pass.labels().data(), {{nodes, edges}, shared});
        });
}

void RelaxedGraphStructure::argmax(Examples examples, const ScoreView& view, std::size_t n_threads,
                                   std::int32_t* labels, Status* statuses) const {
    bounded_argmax(examples, view, n_threads, labels, nullptr, statuses);
}

void RelaxedGraphStructure::bounded_argmax(Examples examples, const ScoreView& view, std::size_t n_threads,
                                           std::int32_t* labels, double* bounds, Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](const Pass& pass, std::size_t i, std::size_t row) {
                           if (length(examples.first + i)) std::ranges::copy(pass.labels(), labels + row);
                           if (bounds) bounds[i] = pass.total();
                       });
}

namespace {

[[noreturn]] void refuse(const std::string& question) {
    throw std::invalid_argument(question +
                                " needs exact answers, and inference='trw' only bounds them. Raise the budget, leave "
                                "out edges, or cut the graph into smaller ones.");
}

}  // namespace

void RelaxedGraphStructure::max_marginals(Examples, const ScoreView&, std::size_t, double*, Status*) const {
    refuse("max_marginals");
}

void RelaxedGraphStructure::entropy(Examples, const ScoreView&, std::size_t, double*, Status*) const {
    refuse("entropy");
}

void RelaxedGraphStructure::sample(Examples, const ScoreView&, std::size_t, std::size_t, std::uint64_t, std::int32_t*,
                                   Status*) const {
    refuse("sample");
}

void RelaxedGraphStructure::k_best(Examples, const ScoreView&, std::size_t, std::size_t, std::int32_t*, double*,
                                   Status*) const {
    refuse("k_best");
}

}  // namespace dualfield
