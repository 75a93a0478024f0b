#include "elimination.hpp"

#include <algorithm>
#include <limits>

namespace dualfield {
namespace {

using Node = std::int32_t;
using Neighbours = std::vector<Node>;  // sorted

bool contains(const Neighbours& some, Node node) {
    return std::binary_search(some.begin(), some.end(), node);
}
void insert(Neighbours& some, Node node) {
    const auto at = std::lower_bound(some.begin(), some.end(), node);
    if (at == some.end() || *at != node) some.insert(at, node);
}
void erase(Neighbours& some, Node node) {
    const auto at = std::lower_bound(some.begin(), some.end(), node);
    if (at != some.end() && *at == node) some.erase(at);
}

// The graph that is left, and how many pairs of neighbours of each node are not joined.
class Remaining {
  public:
    Remaining(std::size_t n_nodes, const Node* edges, std::size_t n_edges)
        : neighbours_(n_nodes), fill_(n_nodes), is_there_(n_nodes, true) {
        for (std::size_t e = 0; e < n_edges; ++e) {
            insert(at(edges[2 * e]), edges[2 * e + 1]);
            insert(at(edges[2 * e + 1]), edges[2 * e]);
        }
        for (std::size_t t = 0; t < n_nodes; ++t) fill_[t] = count(static_cast<Node>(t));
    }
    Node next() const {
        Node best = -1;
        for (Node t = 0; t < static_cast<Node>(fill_.size()); ++t) {
            if (!is_there_[index(t)]) continue;
            if (best < 0 || fill_[index(t)] < fill_[index(best)] ||
                (fill_[index(t)] == fill_[index(best)] &&
                 neighbours_[index(t)].size() < neighbours_[index(best)].size()))
                best = t;
        }
        return best;
    }
    // Removes a node, joins its neighbours, and returns them.
    Neighbours eliminate(Node node) {
        const Neighbours around = at(node);
        is_there_[index(node)] = false;
        for (const Node one : around) {
            erase(at(one), node);
            for (const Node other : around)
                if (other != one) insert(at(one), other);
        }
        Neighbours changed = around;
        for (const Node one : around)
            for (const Node other : at(one)) insert(changed, other);
        for (const Node one : changed) fill_[index(one)] = count(one);
        return around;
    }

  private:
    static std::size_t index(Node node) { return static_cast<std::size_t>(node); }
    Neighbours& at(Node node) { return neighbours_[index(node)]; }
    std::size_t count(Node node) const {
        const Neighbours& around = neighbours_[index(node)];
        std::size_t missing = 0;
        for (std::size_t i = 0; i < around.size(); ++i)
            for (std::size_t j = i + 1; j < around.size(); ++j)
                missing += !contains(neighbours_[index(around[i])], around[j]);
        return missing;
    }

    std::vector<Neighbours> neighbours_;
    std::vector<std::size_t> fill_;
    std::vector<bool> is_there_;
};

// The strides of the axes of a table over `nodes` in one over `others`, of n entries each; 0 for those that it lacks.
std::vector<std::size_t> strides_in(const std::vector<Node>& nodes, const std::vector<Node>& others, std::size_t n) {
    std::vector<std::size_t> strides(nodes.size(), 0);
    std::size_t stride = 1;
    for (std::size_t j = others.size(); j-- > 0; stride *= n) {
        const auto found = std::find(nodes.begin(), nodes.end(), others[j]);
        if (found != nodes.end()) strides[static_cast<std::size_t>(found - nodes.begin())] = stride;
    }
    return strides;
}

// n^exponent, or the largest number if that is too large.
std::size_t power(std::size_t n, std::size_t exponent) {
    std::size_t result = 1;
    for (std::size_t i = 0; i < exponent; ++i) {
        if (result > std::numeric_limits<std::size_t>::max() / n) return std::numeric_limits<std::size_t>::max();
        result *= n;
    }
    return result;
}

}  // namespace

EliminationPlan plan_elimination(std::size_t n_nodes, std::size_t n_labels, const Node* edges, std::size_t n_edges,
                                 std::size_t most_cells) {
    EliminationPlan plan;
    Remaining graph(n_nodes, edges, n_edges);
    std::vector<std::int32_t> step_of(n_nodes, -1);
    for (std::size_t s = 0; s < n_nodes; ++s) {
        EliminationStep step;
        const Node node = graph.next();
        const Neighbours around = graph.eliminate(node);
        step.nodes.push_back(node);
        step.nodes.insert(step.nodes.end(), around.begin(), around.end());
        step.n_below = power(n_labels, around.size());
        step.cells = power(n_labels, around.size() + 1);
        plan.width = std::max(plan.width, around.size());
        const bool is_too_large = step.cells > most_cells || plan.cells > most_cells - step.cells;
        step.table = plan.cells;
        step.message = plan.messages;
        plan.cells = is_too_large ? std::max(step.cells, plan.cells) : plan.cells + step.cells;
        plan.messages += step.n_below;
        step_of[static_cast<std::size_t>(node)] = static_cast<std::int32_t>(s);
        plan.steps.push_back(std::move(step));
        if (is_too_large) {
            plan.cells = std::max(plan.cells, most_cells + 1);
            return plan;
        }
    }
    const auto order = [&](Node t) { return step_of[static_cast<std::size_t>(t)]; };
    for (EliminationStep& step : plan.steps)
        std::sort(step.nodes.begin() + 1, step.nodes.end(), [&](Node a, Node b) { return order(a) < order(b); });
    for (std::size_t s = 0; s < n_nodes; ++s) {
        EliminationStep& step = plan.steps[s];
        if (step.nodes.size() == 1) continue;
        step.parent = order(step.nodes[1]);
        EliminationStep& parent = plan.steps[static_cast<std::size_t>(step.parent)];
        step.strides = strides_in(parent.nodes, {step.nodes.begin() + 1, step.nodes.end()}, n_labels);
        parent.children.push_back(static_cast<std::int32_t>(s));
    }
    for (std::size_t e = 0; e < n_edges; ++e) {
        const Node from = edges[2 * e], to = edges[2 * e + 1];
        EliminationStep& step = plan.steps[static_cast<std::size_t>(std::min(order(from), order(to)))];
        step.edges.push_back({static_cast<std::int32_t>(e), strides_in(step.nodes, {from, to}, n_labels)});
    }
    return plan;
}

}  // namespace dualfield
