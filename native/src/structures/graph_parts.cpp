#include "dualfield/structures/graph_parts.hpp"

#include <map>
#include <stdexcept>

#include "dualfield/core/sizes.hpp"

namespace dualfield {

GraphParts::GraphParts(std::size_t n_labels, std::span<const std::int64_t> offsets, const std::int32_t* edges,
                       std::span<const std::int64_t> edge_offsets, const Options& options)
    : n_labels_(n_labels), edges_(edges), edge_offsets_(edge_offsets), options_(options) {
    const std::size_t n = offsets.size() - 1, n_pairs = checked_product(n_labels, n_labels);
    label_offsets_ = offsets;
    parts_.tables.push_back({n_labels, offsets, offsets.first(n)});
    if (options.with_edges) parts_.tables.push_back({n_pairs, edge_offsets, edge_offsets.first(n)});
    parts_.n_shared = checked_product(options.n_types, n_pairs);
    std::map<std::vector<std::int32_t>, std::size_t> known;  // by number of nodes and edges
    for (std::size_t i = 0; i < n; ++i) {
        const auto size = static_cast<std::int32_t>(length(i));
        for (std::size_t e = 0; e < n_edges(i); ++e) {
            const std::int32_t from = edges_of(i)[2 * e], to = edges_of(i)[2 * e + 1];
            if (from >= 0 && to >= 0 && from < size && to < size && from != to) continue;
            const std::string edge = "Example " + std::to_string(i) + " has the edge (" + std::to_string(from) + ", " +
                                     std::to_string(to) + "), ";
            throw std::invalid_argument(from == to ? edge + "which joins a node with itself."
                                                   : edge + "but its nodes are 0 to " + std::to_string(size - 1) + ".");
        }
        std::vector<std::int32_t> shape{size};
        shape.insert(shape.end(), edges_of(i), edges_of(i) + 2 * n_edges(i));
        const auto [found, is_new] = known.try_emplace(std::move(shape), first_of_shape_.size());
        if (is_new) first_of_shape_.push_back(i);
        shape_of_.push_back(found->second);
    }
}

void GraphParts::list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const {
    const auto n = static_cast<std::int32_t>(n_labels_);
    out.own[0].assign(labels, labels + length(example));
    out.own[1].assign(options_.with_edges ? n_edges(example) : 0, -1);
    out.shared.clear();
    for (std::size_t e = 0; e < n_edges(example); ++e) {
        const std::int32_t pair = labels[edges_of(example)[2 * e]] * n + labels[edges_of(example)[2 * e + 1]];
        out.shared.push_back(static_cast<std::int32_t>(type_of(first_edge(example) + e)) * n * n + pair);
        if (options_.with_edges) out.own[1][e] = pair;
    }
}

std::string GraphParts::refusal(std::size_t example, const std::int32_t* labels) const {
    if (!options_.limits) return {};
    for (std::size_t e = 0; e < n_edges(example); ++e) {
        const std::int32_t from = edges_of(example)[2 * e], to = edges_of(example)[2 * e + 1];
        const std::size_t pair =
            static_cast<std::size_t>(labels[from]) * n_labels_ + static_cast<std::size_t>(labels[to]);
        if (options_.limits[type_of(first_edge(example) + e) * n_labels_ * n_labels_ + pair] != 0.0)
            return "those of nodes " + std::to_string(from) + " and " + std::to_string(to) +
                   " may not stand at the ends of their edge.";
    }
    return {};
}

}  // namespace dualfield
