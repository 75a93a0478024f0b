// Graphs: the plans of their shapes, and the questions, each by one or two passes over examples of one shape.
#include "dualfield/structures/graphs/graph.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "dualfield/core/layout.hpp"
#include "dualfield/core/parallel.hpp"
#include "dualfield/core/random.hpp"
#include "dualfield/structures/graphs/elimination.hpp"
#include "dualfield/structures/graphs/junction_parts.hpp"
#include "dualfield/structures/slope.hpp"
#include "graph_pass.hpp"

namespace dualfield {

GraphStructure::GraphStructure(std::size_t n_labels, std::span<const std::int64_t> offsets, const std::int32_t* edges,
                               std::span<const std::int64_t> edge_offsets, const Options& options, std::size_t budget)
    : GraphParts(n_labels, offsets, edges, edge_offsets, options) {
    const std::size_t most = budget / sizeof(double);
    std::vector<std::int32_t> sizes, nodes;
    std::vector<std::int64_t> begins;
    for (const std::size_t i : first_of_shape_) {
        sizes.assign(length(i), static_cast<std::int32_t>(n_labels));
        nodes.resize(length(i));
        std::iota(nodes.begin(), nodes.end(), 0);
        begins.resize(length(i) + 1);
        std::iota(begins.begin(), begins.end(), 0);
        for (std::size_t e = first_edge(i); e < first_edge(i + 1); ++e) {
            nodes.insert(nodes.end(), scope(e).begin(), scope(e).end());
            begins.push_back(static_cast<std::int64_t>(nodes.size()));
        }
        plans_.push_back(
            std::make_unique<const EliminationPlan>(plan_elimination(sizes, {nodes, begins}, {most, most})));
        if (plans_.back()->is_too_large)
            throw TooWide("Example " + std::to_string(i) + " needs tables of more than " + std::to_string(budget) +
                          " bytes for exact answers: a node of it has " + std::to_string(plans_.back()->width) +
                          " neighbours when it is eliminated, with " + std::to_string(n_labels) + " labels each. " +
                          (has_pairs_only() ? "Use inference='trw', which bounds, raise" : "Raise") +
                          " the budget, leave out edges, or cut the graph into smaller ones.");
    }
}

GraphStructure::~GraphStructure() = default;

const EliminationPlan& GraphStructure::plan(std::size_t example) const {
    return *plans_[shape_of_[example]];
}

std::size_t GraphStructure::width(std::size_t example) const {
    return plan(example).width;
}

// Calls body(pass, group) for groups of examples of one shape, of as many as there are lanes or of one, on several
// threads. Lanes do not change answers, so neither does the way in which groups are formed.
template <class Body>
void GraphStructure::for_groups(Examples examples, const ScoreView& view, std::size_t n_threads, bool in_lanes,
                                Body body) const {
    std::vector<std::size_t> order(examples.size()), begins;
    std::iota(order.begin(), order.end(), examples.first);
    const auto by_shape = [&](std::size_t a, std::size_t b) { return shape_of_[a] < shape_of_[b]; };
    if (in_lanes && !std::is_sorted(order.begin(), order.end(), by_shape))
        std::stable_sort(order.begin(), order.end(), by_shape);
    for (std::size_t at = 0; at < order.size();) {
        begins.push_back(at);
        const std::size_t shape = shape_of_[order[at]],
                          most = in_lanes && JunctionPass::has_lanes(*plans_[shape]) ? kSideBySide : 1;
        const std::size_t first = at;
        while (at < order.size() && at - first < most && shape_of_[order[at]] == shape) ++at;
    }
    begins.push_back(order.size());
    n_threads = std::max<std::size_t>(1, std::min(n_threads, begins.size() - 1));
    std::vector<Pass> passes;
    passes.reserve(n_threads);
    for (std::size_t i = 0; i < n_threads; ++i) passes.emplace_back(*this);
    parallel_for(begins.size() - 1, n_threads, [&](std::size_t worker, std::size_t g) {
        const std::span group(order.data() + begins[g], begins[g + 1] - begins[g]);
        passes[worker].begin(group, examples.first, view);
        body(passes[worker], group);
    });
}

namespace {

// Writes statuses of the examples of a group that are meant, and calls body(example in group, place in the answer) for
// those that have an answer.
template <class Pass, class Body>
void answer(const Pass& pass, std::span<const std::size_t> group, std::size_t from, bool sums, Status* statuses,
            Body body) {
    for (std::size_t i = 0; i < group.size(); ++i) {
        if (sums && !pass.junction.is_meant(i)) continue;
        Status& status = statuses[group[i] - from];
        status = pass.junction.status(i);
        if (status == Status::ok) body(i, group[i] - from);
    }
}

}  // namespace

void GraphStructure::log_partition(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                   Status* statuses) const {
    for_groups(examples, view, n_threads, true, [&](Pass& pass, std::span<const std::size_t> group) {
        pass.junction.up_sum([&] {
            answer(pass, group, examples.first, true, statuses,
                   [&](std::size_t i, std::size_t at) { out[at] = pass.total(i); });
        });
    });
}

void GraphStructure::maximum(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                             Status* statuses) const {
    for_groups(examples, view, n_threads, true, [&](Pass& pass, std::span<const std::size_t> group) {
        pass.junction.up_max();
        answer(pass, group, examples.first, false, statuses,
               [&](std::size_t i, std::size_t at) { out[at] = pass.total(i); });
    });
}

void GraphStructure::marginals(Examples examples, const ScoreView& view, std::size_t n_threads, const PartSums& sums,
                               double* out, Status* statuses) const {
    double* edges = options_.with_edges ? sums.own[1] : nullptr;
    const std::size_t base = first(examples.first), base_edge = first_edge(examples.first);
    for_groups(examples, view, n_threads, true, [&](Pass& pass, std::span<const std::size_t> group) {
        pass.junction.up_sum([&] {
            answer(pass, group, examples.first, true, statuses,
                   [&](std::size_t i, std::size_t at) { out[at] = pass.total(i); });
            pass.spread([&](std::size_t i) -> typename Pass::Place {
                const std::size_t example = group[i];
                return {sums.own[0] + (first(example) - base) * n_labels_,
                        edges ? edges + (first_edge(example) - base_edge) * edge_width_ : nullptr,
                        sums.shared ? sums.shared + (example - examples.first) * parts_.n_shared : nullptr};
            });
        });
    });
}

void GraphStructure::argmax(Examples examples, const ScoreView& view, std::size_t n_threads, std::int32_t* labels,
                            Status* statuses) const {
    bounded_argmax(examples, view, n_threads, labels, nullptr, statuses);
}

void GraphStructure::bounded_argmax(Examples examples, const ScoreView& view, std::size_t n_threads,
                                    std::int32_t* labels, double* bounds, Status* statuses) const {
    for_groups(examples, view, n_threads, true, [&](Pass& pass, std::span<const std::size_t> group) {
        pass.junction.up_max();
        answer(pass, group, examples.first, false, statuses, [&](std::size_t i, std::size_t at) {
            pass.junction.decode(i, labels + (first(group[i]) - first(examples.first)));
            if (bounds) bounds[at] = pass.total(i);
        });
    });
}

void GraphStructure::max_marginals(Examples examples, const ScoreView& view, std::size_t n_threads, double* own,
                                   Status* statuses) const {
    for_groups(examples, view, n_threads, false, [&](Pass& pass, std::span<const std::size_t> group) {
        pass.junction.up_max();
        answer(pass, group, examples.first, false, statuses, [&](std::size_t, std::size_t) {
            pass.spread_best(own + (first(group[0]) - first(examples.first)) * n_labels_);
        });
    });
}

void GraphStructure::entropy(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                             Status* statuses) const {
    for_groups(examples, view, n_threads, false, [&](Pass& pass, std::span<const std::size_t> group) {
        pass.junction.up_sum([&] {
            answer(pass, group, examples.first, true, statuses,
                   [&](std::size_t, std::size_t at) { pass.junction.down(nullptr, nullptr, out + at); });
        });
    });
}

void GraphStructure::sample(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t n_samples,
                            std::uint64_t seed, std::int32_t* labels, Status* statuses) const {
    const std::size_t stride = first(examples.last) - first(examples.first);
    for_groups(examples, view, n_threads, false, [&](Pass& pass, std::span<const std::size_t> group) {
        pass.junction.up_sum([&] {
            answer(pass, group, examples.first, true, statuses, [&](std::size_t i, std::size_t) {
                RandomStream random(seed, group[0]);
                std::int32_t* own = labels + (first(group[0]) - first(examples.first));
                for (std::size_t draw = 0; draw < n_samples; ++draw) pass.junction.draw(i, random, own + draw * stride);
            });
        });
    });
}

// One graph after another, in the memory of one pass.
class GraphStructure::OneGraph final : public Block {
  public:
    explicit OneGraph(const GraphStructure& graph) : graph_(graph), pass_(graph) {}

    Answer marginals(std::size_t example, const ScoreView& scores, const PartSums& sums) override {
        begin(example, scores);
        pass_.junction.up_sum([&] {
            if (pass_.junction.status(0) != Status::ok) return;
            pass_.spread([&](std::size_t) -> Pass::Place {
                return {sums.own[0], graph_.options_.with_edges ? sums.own[1] : nullptr, sums.shared};
            });
        });
        return {pass_.total(0), pass_.junction.status(0)};
    }
    Answer best(std::size_t example, const ScoreView& scores, std::int32_t* labels) override {
        begin(example, scores);
        pass_.junction.up_max();
        if (pass_.junction.status(0) == Status::ok) pass_.junction.decode(0, labels);
        return {pass_.total(0), pass_.junction.status(0)};
    }

  private:
    void begin(std::size_t example, const ScoreView& scores) {
        pass_.forget();  // other scores may be in the same place
        example_ = example;
        pass_.begin({&example_, 1}, example, scores);
    }

    const GraphStructure& graph_;
    std::size_t example_ = 0;
    Pass pass_;
};

std::unique_ptr<Block> GraphStructure::block() const {
    return std::make_unique<OneGraph>(*this);
}

std::unique_ptr<Slope> GraphStructure::slope() const {
    return junction_slope(*this);
}

bool GraphStructure::list_junction(std::size_t example, JunctionParts& out) const {
    const auto n_pairs = static_cast<std::int64_t>(n_labels_ * n_labels_);
    out.clear();
    for (const EliminationStep& step : plan(example).steps) out.steps.push_back(step.nodes);
    if (!has_pairs_only()) {
        list_scopes(example, out);
        return false;
    }
    for (std::size_t e = 0; e < n_edges(example); ++e) {
        const auto edge = static_cast<std::int32_t>(e);
        const auto type = static_cast<std::int64_t>(type_of(first_edge(example) + e));
        const std::int32_t* ends = edges_of(example) + 2 * e;
        out.factors.push_back({ends[0], ends[1], options_.with_edges ? edge : -1, type * n_pairs});
        if (options_.limits) out.limits.push_back({ends[0], ends[1], options_.limits + type * n_pairs});
    }
    return true;
}

void GraphStructure::list_scopes(std::size_t example, JunctionParts& out) const {
    for (std::size_t e = 0; e < n_edges(example); ++e) {
        const std::size_t edge = first_edge(example) + e, type = type_of(edge);
        const std::span<const std::int32_t> nodes = scope(edge);
        out.scopes.push_back(
            {.nodes = {nodes.begin(), nodes.end()},
             .own = options_.with_edges ? static_cast<std::int64_t>(e * edge_width_ + row_begin(type)) : -1,
             .shared = static_cast<std::int64_t>(table(type)),
             .limit = options_.limits ? options_.limits + table(type) : nullptr});
    }
}

}  // namespace dualfield
