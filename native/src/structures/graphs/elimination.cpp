#include "dualfield/structures/graphs/elimination.hpp"

#include <algorithm>
#include <queue>
#include <tuple>

#include "dualfield/core/sizes.hpp"

namespace dualfield {
namespace {

using Node = std::int32_t;
using Nodes = std::vector<Node>;  // sorted

std::size_t at(Node node) {
    return static_cast<std::size_t>(node);
}

// Adds a node unless it is there; says whether it was not.
bool insert(Nodes& some, Node node) {
    const auto place = std::lower_bound(some.begin(), some.end(), node);
    if (place != some.end() && *place == node) return false;
    some.insert(place, node);
    return true;
}

void erase(Nodes& some, Node node) {
    some.erase(std::lower_bound(some.begin(), some.end(), node));
}

// Calls body(node) for the nodes that both have: each of the fewer is looked up, so that a hub of a large star is
// cheap.
template <class Body>
void for_common(const Nodes& one, const Nodes& two, Body body) {
    const Nodes &few = one.size() < two.size() ? one : two, &many = one.size() < two.size() ? two : one;
    auto from = many.begin();
    for (const Node node : few) {
        from = std::lower_bound(from, many.end(), node);
        if (from == many.end()) return;
        if (*from == node) body(node);
    }
}

std::size_t n_common(const Nodes& one, const Nodes& two) {
    std::size_t count = 0;
    for_common(one, two, [&](Node) { ++count; });
    return count;
}

// The graph that is left. fill: how many pairs of neighbours of each node are not joined. It is kept up to date by what
// changes, and prices that have changed are queued anew; those in the queue that are no longer right are passed over.
class Remaining {
  public:
    Remaining(std::span<const std::int32_t> n_labels, const Scopes& scopes)
        : n_labels_(n_labels), neighbours_(n_labels.size()), fill_(n_labels.size()), is_there_(n_labels.size(), true) {
        for (std::size_t f = 0; f < scopes.size(); ++f)
            for (const Node one : scopes[f])
                for (const Node other : scopes[f])
                    if (one != other) neighbours_[at(one)].push_back(other);
        for (Nodes& around : neighbours_) {
            std::sort(around.begin(), around.end());
            around.erase(std::unique(around.begin(), around.end()), around.end());
        }
        for (std::size_t t = 0; t < n_labels.size(); ++t) {
            const Nodes& around = neighbours_[t];
            fill_[t] += around.empty() ? 0 : around.size() * (around.size() - 1) / 2;
            for (const Node other : around)  // every edge once: those who know both its ends lack this pair not
                if (at(other) > t) for_common(around, neighbours_[at(other)], [&](Node third) { --fill_[at(third)]; });
        }
        for (std::size_t t = 0; t < n_labels.size(); ++t) offer(static_cast<Node>(t));
    }

    // The next node is taken out, its neighbours are joined and returned.
    std::pair<Node, Nodes> next() {
        Price best = prices_.top();
        for (; !is_right(best); best = prices_.top()) prices_.pop();
        prices_.pop();
        const Node node = std::get<2>(best);
        is_there_[at(node)] = false;
        const Nodes around = std::move(neighbours_[at(node)]);
        changed_.clear();
        for (const Node one : around) {
            Nodes& own = neighbours_[at(one)];
            erase(own, node);
            fill_[at(one)] -= own.size() - n_common(own, around);  // they were not joined with the node
            changed_.push_back(one);
        }
        if (std::get<0>(best) > 0) join(around);
        std::sort(changed_.begin(), changed_.end());
        changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
        for (const Node one : changed_) offer(one);
        return {node, around};
    }
    std::size_t cells(Node node) const {
        std::size_t product = static_cast<std::size_t>(n_labels_[at(node)]);
        for (const Node other : neighbours_[at(node)]) {
            product = saturated_product(product, n_labels_[at(other)]);
            if (product > kLargestProduct) break;
        }
        return product;
    }

  private:
    using Price = std::tuple<std::size_t, std::size_t, Node>;  // pairs to join, cells of the table, node

    void join(const Nodes& around) {
        for (std::size_t i = 0; i < around.size(); ++i)
            for (std::size_t j = i + 1; j < around.size(); ++j) {
                Nodes &one = neighbours_[at(around[i])], &other = neighbours_[at(around[j])];
                if (!insert(one, around[j])) continue;
                std::size_t both = 0;  // their common neighbours lack this pair no longer
                for_common(one, other, [&](Node third) {
                    --fill_[at(third)];
                    changed_.push_back(third);
                    ++both;
                });
                fill_[at(around[i])] += one.size() - 1 - both;
                fill_[at(around[j])] += other.size() - both;
                insert(other, around[i]);
            }
    }
    void offer(Node node) { prices_.emplace(fill_[at(node)], cells(node), node); }
    bool is_right(const Price& price) const {
        const Node node = std::get<2>(price);
        return is_there_[at(node)] && std::get<0>(price) == fill_[at(node)] && std::get<1>(price) == cells(node);
    }

    std::span<const std::int32_t> n_labels_;
    std::vector<Nodes> neighbours_;
    std::vector<std::size_t> fill_;
    std::vector<bool> is_there_;
    std::priority_queue<Price, std::vector<Price>, std::greater<>> prices_;
    Nodes changed_;
};

// The walk of the cells of a table over `nodes` in one over `others`, some of them.
Walk walk_in(std::span<const Node> nodes, std::span<const Node> others, std::span<const std::int32_t> n_labels) {
    std::vector<Walk::Loop> loops;
    for (const Node node : nodes) {
        const auto size = static_cast<std::size_t>(n_labels[at(node)]);
        if (size == 1) continue;
        std::size_t stride = 0, below = 1;
        for (std::size_t j = others.size(); j-- > 0;) {
            if (others[j] == node) stride = below;
            below *= static_cast<std::size_t>(n_labels[at(others[j])]);
        }
        if (!loops.empty() && loops.back().stride == size * stride) {
            loops.back() = {loops.back().size * size, stride};
        } else {
            loops.push_back({size, stride});
        }
    }
    Walk walk;
    const auto take = [&](Walk::Loop& into) {
        if (loops.empty()) return;
        into = loops.back();
        loops.pop_back();
    };
    take(walk.run);
    take(walk.rows);
    walk.outer = std::move(loops);
    return walk;
}

}  // namespace

EliminationPlan plan_elimination(std::span<const std::int32_t> n_labels, const Scopes& scopes,
                                 const EliminationLimits& limits) {
    EliminationPlan plan;
    Remaining graph(n_labels, scopes);
    std::vector<std::int32_t> step_of(n_labels.size(), -1);
    for (std::size_t s = 0; s < n_labels.size(); ++s) {
        EliminationStep& step = plan.steps.emplace_back();
        const auto [node, around] = graph.next();
        step.n_labels = static_cast<std::size_t>(n_labels[at(node)]);
        plan.most_factor = std::max(plan.most_factor, step.n_labels);
        step.nodes.push_back(node);
        step.nodes.insert(step.nodes.end(), around.begin(), around.end());
        step.n_below = 1;
        for (const Node other : around) step.n_below = saturated_product(step.n_below, n_labels[at(other)]);
        step.cells = saturated_product(step.n_below, step.n_labels);
        plan.width = std::max(plan.width, around.size());
        step_of[at(node)] = static_cast<std::int32_t>(s);
        if (step.cells > limits.table || step.cells > limits.cells || plan.cells > limits.cells - step.cells) {
            plan.is_too_large = true;
            return plan;
        }
        step.table = plan.cells;
        step.message = plan.messages;
        plan.cells += step.cells;
        plan.messages += step.n_below;
        plan.most_below = std::max(plan.most_below, step.n_below);
    }
    const auto order = [&](Node t) { return step_of[at(t)]; };
    for (EliminationStep& step : plan.steps)
        std::sort(step.nodes.begin() + 1, step.nodes.end(), [&](Node a, Node b) { return order(a) < order(b); });
    // What the step that takes an input makes of it: first of all by which of its axes is the last that it needs.
    struct Given {
        std::size_t axis;
        bool is_message;
        std::size_t index;
        std::span<const Node> scope;
    };
    std::vector<std::vector<Given>> given(plan.steps.size());
    const auto give = [&](bool is_message, std::size_t index, std::span<const Node> scope) {
        Node first = scope[0];
        for (const Node node : scope)
            if (order(node) < order(first)) first = node;
        const std::vector<Node>& nodes = plan.steps[static_cast<std::size_t>(order(first))].nodes;
        std::size_t axis = 0;
        for (const Node node : scope)
            axis =
                std::max(axis, static_cast<std::size_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin()));
        given[static_cast<std::size_t>(order(first))].push_back({axis, is_message, index, scope});
        return order(first);
    };
    plan.factor_begins.push_back(0);
    for (std::size_t f = 0; f < scopes.size(); ++f) {
        std::size_t cells = 1;
        for (const Node node : scopes[f]) cells *= static_cast<std::size_t>(n_labels[at(node)]);
        plan.factor_cells.push_back(cells);
        plan.factor_begins.push_back(plan.factor_begins.back() + cells);
        plan.most_factor = std::max(plan.most_factor, cells);
        give(false, f, scopes[f]);
    }
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
        EliminationStep& step = plan.steps[s];
        const std::span<const Node> nodes(step.nodes);
        std::size_t stride = step.n_below;
        for (const Node other : nodes.subspan(1))
            step.strides.push_back(stride /= static_cast<std::size_t>(n_labels[at(other)]));
        if (nodes.size() > 1) step.parent = give(true, s, nodes.subspan(1));
        // Children come before their parents: all that is given to this step is known.
        std::stable_sort(given[s].begin(), given[s].end(),
                         [](const Given& a, const Given& b) { return a.axis < b.axis; });
        std::size_t cells = step.n_labels, before = 0, partial = 0;
        for (std::size_t axis = 0, next = 0; axis < nodes.size(); ++axis) {
            if (axis > 0) cells *= static_cast<std::size_t>(n_labels[at(nodes[axis])]);
            const bool is_needed = next < given[s].size() && given[s][next].axis == axis;
            if (axis > 0 && axis + 1 < nodes.size() && !is_needed) continue;
            EliminationStep::Level level{cells, axis == 0 ? cells : cells / before, {}};
            for (; next < given[s].size() && given[s][next].axis == axis; ++next) {
                const Given& one = given[s][next];
                level.inputs.push_back(
                    {one.is_message, one.index, walk_in(nodes.first(axis + 1), one.scope, n_labels)});
            }
            partial += axis + 1 < nodes.size() ? cells : 0;
            before = cells;
            step.levels.push_back(std::move(level));
        }
        plan.most_partial = std::max(plan.most_partial, partial);
    }
    return plan;
}

}  // namespace dualfield
