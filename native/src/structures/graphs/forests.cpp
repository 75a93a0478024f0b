#include "forests.hpp"

#include <algorithm>
#include <numeric>

namespace dualfield {
namespace {

using Node = std::int32_t;

std::size_t index(std::int32_t i) {
    return static_cast<std::size_t>(i);
}

// Colours edges so that no two of a colour leave the same node for a higher one, nor come to it from a lower one, with
// as few colours as there are edges at the busiest side of a node (Koenig 1916). Those of one colour are paths.
class PathColouring {
  public:
    PathColouring(std::size_t n_nodes, const Node* edges, std::size_t n_edges) : ends_(2 * n_edges) {
        std::vector<std::size_t> busy(2 * n_nodes, 0);
        for (std::size_t e = 0; e < n_edges; ++e) {
            const auto [low, high] = std::minmax(edges[2 * e], edges[2 * e + 1]);
            ends_[2 * e] = 2 * index(low);
            ends_[2 * e + 1] = 2 * index(high) + 1;
            count_ = std::max({count_, ++busy[ends_[2 * e]], ++busy[ends_[2 * e + 1]]});
        }
        at_.assign(2 * n_nodes * count_, -1);
    }
    std::size_t count() const { return count_; }
    std::vector<std::int32_t> colours() {
        std::vector<std::int32_t> colour(ends_.size() / 2);
        for (std::size_t e = 0; e < colour.size(); ++e) {
            const std::size_t a = free_colour(ends_[2 * e]), b = free_colour(ends_[2 * e + 1]);
            // On the path of edges coloured a, b, a, ... from the higher node the colours change places: then a is free
            // at both. The graph has two sides, so the path does not come to the lower node.
            std::vector<std::size_t> path;
            std::size_t place = ends_[2 * e + 1], next = a, other = b;
            while (at(place, next) >= 0) {
                path.push_back(index(at(place, next)));
                const std::size_t along = path.back();
                place = place == ends_[2 * along] ? ends_[2 * along + 1] : ends_[2 * along];
                std::swap(next, other);
            }
            for (const std::size_t along : path)
                for (const std::size_t end : {ends_[2 * along], ends_[2 * along + 1]})
                    at(end, index(colour[along])) = -1;
            for (const std::size_t along : path) {
                colour[along] = static_cast<std::int32_t>(index(colour[along]) == a ? b : a);
                put(along, index(colour[along]));
            }
            colour[e] = static_cast<std::int32_t>(a);
            put(e, a);
        }
        return colour;
    }

  private:
    std::int32_t& at(std::size_t place, std::size_t colour) { return at_[place * count_ + colour]; }
    void put(std::size_t edge, std::size_t colour) {
        for (const std::size_t end : {ends_[2 * edge], ends_[2 * edge + 1]})
            at(end, colour) = static_cast<std::int32_t>(edge);
    }
    std::size_t free_colour(std::size_t place) {
        std::size_t colour = 0;
        while (at(place, colour) >= 0) ++colour;
        return colour;
    }

    std::size_t count_ = 0;
    std::vector<std::size_t> ends_;  // [2 E]: a node has two sides, 2 v to higher and 2 v + 1 to lower ones
    std::vector<std::int32_t> at_;   // the edge of each colour at each side of a node
};

// Each edge goes to the forest in which its nodes have the fewest edges, of those in which it joins two trees: forests
// of long paths leave more room than stars. To begin with there are as many as it takes at least.
class GreedyForests {
  public:
    GreedyForests(std::size_t n_nodes, const Node* edges, std::size_t n_edges) : n_(n_nodes) {
        const std::size_t fewest = n_edges > 0 ? (n_edges + n_nodes - 2) / (n_nodes - 1) : 0;
        while (count() < fewest) open();
        for (std::size_t e = 0; e < n_edges; ++e)
            forest_of.push_back(static_cast<std::int32_t>(add(index(edges[2 * e]), index(edges[2 * e + 1]))));
    }
    std::size_t count() const { return leader_.size(); }
    std::vector<std::int32_t> forest_of;

  private:
    void open() {
        leader_.emplace_back(n_);
        std::iota(leader_.back().begin(), leader_.back().end(), std::size_t{0});
        degree_.emplace_back(n_);
    }
    std::size_t find(std::size_t f, std::size_t v) {
        std::vector<std::size_t>& leader = leader_[f];
        while (leader[v] != v) v = leader[v] = leader[leader[v]];
        return v;
    }
    std::size_t add(std::size_t a, std::size_t b) {
        const auto busy = [&](std::size_t f) { return degree_[f][a] + degree_[f][b]; };
        std::size_t best = count();
        for (std::size_t f = 0; f < count(); ++f)
            if (find(f, a) != find(f, b) && (best == count() || busy(f) < busy(best))) best = f;
        if (best == count()) open();
        leader_[best][find(best, a)] = find(best, b);
        ++degree_[best][a];
        ++degree_[best][b];
        return best;
    }

    std::size_t n_;
    std::vector<std::vector<std::size_t>> leader_, degree_;  // [forests][n]
};

void list_arcs(Forests& out) {
    const std::size_t n = out.n_nodes;
    out.first.assign(out.count * n + 1, 0);
    for (std::size_t arc = 0; arc < out.ends.size(); ++arc)
        ++out.first[index(out.forest_of[arc / 2]) * n + index(out.ends[arc]) + 1];
    std::partial_sum(out.first.begin(), out.first.end(), out.first.begin());
    out.arcs.resize(out.ends.size());
    std::vector<std::int32_t> next(out.first.begin(), out.first.end() - 1);
    for (std::size_t arc = 0; arc < out.ends.size(); ++arc)
        out.arcs[index(next[index(out.forest_of[arc / 2]) * n + index(out.ends[arc])]++)] =
            static_cast<std::int32_t>(arc);
}

// The nodes of one forest, each after its parent: from the deepest place that is left (depth first).
std::vector<Node> walk(const Forests& forests, std::size_t forest) {
    std::vector<Node> order, open;
    std::vector<bool> is_seen(forests.n_nodes, false);
    for (std::size_t root = 0; root < forests.n_nodes; ++root) {
        if (!is_seen[root]) open.push_back(static_cast<Node>(root));
        while (!open.empty()) {
            const Node v = open.back();
            open.pop_back();
            if (is_seen[index(v)]) continue;
            is_seen[index(v)] = true;
            order.push_back(v);
            for (const std::int32_t arc : forests.into(forest, index(v))) {
                const Node other = forests.ends[index(arc ^ 1)];
                if (!is_seen[index(other)]) open.push_back(other);
            }
        }
    }
    return order;
}

// Roots each tree at the first of its nodes in the order of visits.
void plant(Forests& out) {
    const std::size_t n = out.n_nodes;
    out.tree.assign(out.count * n, -1);
    out.up.assign(out.count * n, -1);
    out.depth.assign(out.count * n, 0);
    for (std::size_t f = 0; f < out.count; ++f)
        for (const Node root : out.order) {
            if (out.tree[f * n + index(root)] >= 0) continue;
            std::vector<Node> found{root};
            const auto number = static_cast<std::int32_t>(out.roots.size());
            out.tree[f * n + index(root)] = number;
            for (std::size_t at = 0; at < found.size(); ++at) {
                const std::size_t v = index(found[at]);
                for (const std::int32_t arc : out.into(f, v)) {
                    const std::size_t other = index(out.ends[index(arc ^ 1)]);
                    if (out.tree[f * n + other] >= 0) continue;
                    out.tree[f * n + other] = number;
                    out.up[f * n + other] = arc;
                    out.depth[f * n + other] = out.depth[f * n + v] + 1;
                    found.push_back(static_cast<Node>(other));
                }
            }
            out.roots.push_back(root);
            out.owner.push_back(static_cast<std::int32_t>(f));
            for (std::size_t at = found.size(); at-- > 1;) out.rising.push_back(out.up[f * n + index(found[at])]);
        }
}

}  // namespace

Forests cut_into_forests(std::size_t n_nodes, const std::int32_t* edges, std::size_t n_edges) {
    Forests out;
    out.n_nodes = n_nodes;
    out.degree.assign(n_nodes, 0);
    for (std::size_t e = 0; e < n_edges; ++e) {
        out.ends.insert(out.ends.end(), {edges[2 * e + 1], edges[2 * e]});
        ++out.degree[index(edges[2 * e])];
        ++out.degree[index(edges[2 * e + 1])];
    }
    GreedyForests forests(n_nodes, edges, n_edges);
    PathColouring paths(n_nodes, edges, n_edges);
    const bool are_paths = paths.count() <= forests.count();
    out.count = std::max<std::size_t>(1, are_paths ? paths.count() : forests.count());
    out.forest_of = are_paths ? paths.colours() : std::move(forests.forest_of);
    list_arcs(out);
    if (are_paths) {
        out.order.resize(n_nodes);
        std::iota(out.order.begin(), out.order.end(), 0);
    } else {
        out.order = walk(out, 0);
    }
    plant(out);
    return out;
}

}  // namespace dualfield
