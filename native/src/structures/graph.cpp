// Graphs: the layout of their parts, and the questions, each by one or two passes over every example (graph_pass.hpp).
#include "dualfield/structures/graph.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "dualfield/core/layout.hpp"
#include "dualfield/core/random.hpp"
#include "dualfield/structures/junction_parts.hpp"
#include "elimination.hpp"
#include "graph_pass.hpp"
#include "passes.hpp"

namespace dualfield {

GraphStructure::GraphStructure(std::size_t n_labels, std::span<const std::int64_t> offsets, const std::int32_t* edges,
                               std::span<const std::int64_t> edge_offsets, const Options& options, std::size_t budget)
    : GraphParts(n_labels, offsets, edges, edge_offsets, options) {
    const std::size_t most = budget / sizeof(double);
    for (const std::size_t i : first_of_shape_) {
        plans_.push_back(std::make_unique<const EliminationPlan>(
            plan_elimination(length(i), n_labels, edges_of(i), n_edges(i), most)));
        if (plans_.back()->cells > most)
            throw TooWide("Example " + std::to_string(i) + " needs tables of more than " + std::to_string(budget) +
                          " bytes for exact answers: a node of it has " + std::to_string(plans_.back()->width) +
                          " neighbours when it is eliminated, with " + std::to_string(n_labels) +
                          " labels each. Use inference='trw', which bounds, raise the budget, leave out edges, or cut "
                          "the graph into smaller ones.");
    }
}

GraphStructure::~GraphStructure() = default;

const EliminationPlan& GraphStructure::plan(std::size_t example) const {
    return *plans_[shape_of_[example]];
}

std::size_t GraphStructure::width(std::size_t example) const {
    return plan(example).width;
}

void GraphStructure::log_partition(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                   Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true,
                       [&](const Pass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

void GraphStructure::maximum(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                             Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](const Pass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

namespace {

// Adds the probabilities of the pairs of an edge to them.
void add_pairs(const EliminationStep& step, const EliminationStep::Edge& edge, const double* table, std::size_t n,
               double* pairs) {
    for_rows(step.nodes.size(), n, step.cells, edge.strides.data(),
             [&](std::size_t cell, std::size_t at, std::size_t stride) {
                 for (std::size_t k = 0; k < n; ++k) pairs[at + k * stride] += table[cell + k];
             });
}

// The probabilities of the labels of the node that a step eliminates.
void sum_rows(const EliminationStep& step, const double* table, std::size_t n, double* out) {
    double total = 0.0;
    for (std::size_t v = 0; v < n; ++v) {
        out[v] = 0.0;
        for (std::size_t j = 0; j < step.n_below; ++j) out[v] += table[v * step.n_below + j];
        total += out[v];
    }
    for (std::size_t v = 0; v < n; ++v) out[v] /= total;  // which is 1 but for rounding
}

}  // namespace

// One graph after another, in the memory of one pass.
class GraphStructure::OneGraph final : public Block {
  public:
    explicit OneGraph(const GraphStructure& graph) : graph_(graph), pass_(graph) {}

    Answer marginals(std::size_t example, const ScoreView& scores, const PartSums& sums) override {
        begin(example, scores);
        pass_.up_sum();
        if (pass_.status() == Status::ok)
            spread(graph_, pass_, example, sums.own[0], graph_.options_.with_edges ? sums.own[1] : nullptr,
                   sums.shared);
        return {pass_.total(), pass_.status()};
    }
    Answer best(std::size_t example, const ScoreView& scores, std::int32_t* labels) override {
        begin(example, scores);
        pass_.up_max();
        if (pass_.status() == Status::ok) decode(pass_, graph_.n_labels_, labels);
        return {pass_.total(), pass_.status()};
    }

    // The probabilities of the parts of an example after a pass up; edges and shared may be null.
    static void spread(const GraphStructure& graph, Pass& pass, std::size_t example, double* nodes, double* edges,
                       double* shared) {
        const std::size_t n = graph.n_labels_, n_pairs = n * n;
        if (edges) std::fill_n(edges, graph.n_edges(example) * n_pairs, 0.0);
        if (shared) std::fill_n(shared, graph.parts_.n_shared, 0.0);
        pass.down([&](const EliminationStep& step, const double* table) {
            sum_rows(step, table, n, nodes + static_cast<std::size_t>(step.nodes[0]) * n);
            for (const EliminationStep::Edge& one : step.edges) {
                const auto edge = static_cast<std::size_t>(one.edge);
                if (edges) add_pairs(step, one, table, n, edges + edge * n_pairs);
                if (shared)
                    add_pairs(step, one, table, n, shared + graph.type_of(graph.first_edge(example) + edge) * n_pairs);
            }
        });
    }

    // The best labels after a pass up that maximises: from the last step to the first.
    static void decode(Pass& pass, std::size_t n, std::int32_t* labels) {
        const std::vector<EliminationStep>& steps = pass.plan().steps;
        for (std::size_t s = steps.size(); s-- > 0;) {
            const double* column = pass.table(steps[s]) + pass.place(steps[s], labels);
            std::size_t best = 0;
            for (std::size_t v = 1; v < n; ++v)
                if (column[v * steps[s].n_below] > column[best * steps[s].n_below]) best = v;
            labels[steps[s].nodes[0]] = static_cast<std::int32_t>(best);
        }
    }

  private:
    void begin(std::size_t example, const ScoreView& scores) {
        pass_.forget();  // other scores may be in the same place
        pass_.begin(example, example, scores);
    }

    const GraphStructure& graph_;
    Pass pass_;
};

std::unique_ptr<Block> GraphStructure::block() const {
    return std::make_unique<OneGraph>(*this);
}

bool GraphStructure::list_junction(std::size_t example, JunctionParts& out) const {
    const auto n_pairs = static_cast<std::int64_t>(n_labels_ * n_labels_);
    out.clear();
    for (const EliminationStep& step : plan(example).steps) out.steps.push_back(step.nodes);
    for (std::size_t e = 0; e < n_edges(example); ++e) {
        const auto edge = static_cast<std::int32_t>(e);
        const auto type = static_cast<std::int64_t>(type_of(first_edge(example) + e));
        out.factors.push_back(
            {edges_of(example)[2 * e], edges_of(example)[2 * e + 1], options_.with_edges ? edge : -1, type * n_pairs});
    }
    return true;
}

void GraphStructure::marginals(Examples examples, const ScoreView& view, std::size_t n_threads, const PartSums& sums,
                               double* out, Status* statuses) const {
    double* edges = options_.with_edges ? sums.own[1] : nullptr;
    const std::size_t base_edge = first_edge(examples.first);
    for_examples<Pass>(
        *this, examples, view, n_threads, statuses, true, [&](Pass& pass, std::size_t i, std::size_t row) {
            const std::size_t example = examples.first + i;
            out[i] = pass.total();
            OneGraph::spread(*this, pass, example, sums.own[0] + row * n_labels_,
                             edges ? edges + (first_edge(example) - base_edge) * n_labels_ * n_labels_ : nullptr,
                             sums.shared ? sums.shared + i * parts_.n_shared : nullptr);
        });
}

void GraphStructure::argmax(Examples examples, const ScoreView& view, std::size_t n_threads, std::int32_t* labels,
                            Status* statuses) const {
    for_examples<Pass>(
        *this, examples, view, n_threads, statuses, false,
        [&](Pass& pass, std::size_t, std::size_t row) { OneGraph::decode(pass, n_labels_, labels + row); });
}

void GraphStructure::max_marginals(Examples examples, const ScoreView& view, std::size_t n_threads, double* own,
                                   Status* statuses) const {
    const std::size_t n = n_labels_;
    for_examples<Pass>(
        *this, examples, view, n_threads, statuses, false, [&](Pass& pass, std::size_t, std::size_t row) {
            const std::vector<EliminationStep>& steps = pass.plan().steps;
            std::vector<double> outside;
            for (std::size_t s = steps.size(); s-- > 0;) {
                // Tables become the highest scores of labellings with their labels: what is inside plus the best
                // outside.
                const EliminationStep& step = steps[s];
                outside.assign(step.n_below, step.parent < 0 ? pass.total() : -kInfinity);
                if (step.parent >= 0) {
                    const EliminationStep& parent = steps[static_cast<std::size_t>(step.parent)];
                    const double* above = pass.table(parent);
                    for_rows(parent.nodes.size(), n, parent.cells, step.strides.data(),
                             [&](std::size_t cell, std::size_t at, std::size_t stride) {
                                 for (std::size_t k = 0; k < n; ++k)
                                     outside[at + k * stride] = std::max(outside[at + k * stride], above[cell + k]);
                             });
                }
                double* here = own + (row + static_cast<std::size_t>(step.nodes[0])) * n;
                for (std::size_t v = 0; v < n; ++v) {
                    double* cells = pass.table(step) + v * step.n_below;
                    here[v] = -kInfinity;
                    for (std::size_t j = 0; j < step.n_below; ++j) {
                        // Where nothing inside fits, nothing fits at all.
                        const double inside = pass.message(step)[j];
                        cells[j] = inside > -kInfinity ? cells[j] + (outside[j] - inside) : -kInfinity;
                        here[v] = std::max(here[v], cells[j]);
                    }
                }
            }
        });
}

void GraphStructure::entropy(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                             Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true, [&](Pass& pass, std::size_t i, std::size_t) {
        out[i] = std::max(pass.down([](const EliminationStep&, const double*) {}), 0.0);
    });
}

void GraphStructure::sample(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t n_samples,
                            std::uint64_t seed, std::int32_t* labels, Status* statuses) const {
    const std::size_t n = n_labels_, stride = first(examples.last) - first(examples.first);
    for_examples<Pass>(
        *this, examples, view, n_threads, statuses, true, [&](Pass& pass, std::size_t i, std::size_t row) {
            RandomStream random(seed, examples.first + i);
            const std::vector<EliminationStep>& steps = pass.plan().steps;
            std::vector<double> share(n);
            for (std::size_t draw = 0; draw < n_samples; ++draw) {
                std::int32_t* own = labels + draw * stride + row;
                for (std::size_t s = steps.size(); s-- > 0;) {
                    const double* column = pass.table(steps[s]) + pass.place(steps[s], own);
                    for (std::size_t v = 0; v < n; ++v) share[v] = column[v * steps[s].n_below];
                    own[steps[s].nodes[0]] = static_cast<std::int32_t>(draw_index({share.data(), n}, random.uniform()));
                }
            }
        });
}

}  // namespace dualfield
