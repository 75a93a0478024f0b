#include "dualfield/structures/graphs/graph_parts.hpp"

#include <map>
#include <stdexcept>

#include "dualfield/core/sizes.hpp"

namespace dualfield {

GraphParts::GraphParts(std::size_t n_labels, std::span<const std::int64_t> offsets, const std::int32_t* edges,
                       std::span<const std::int64_t> edge_offsets, const Options& options)
    : n_labels_(n_labels), edges_(edges), edge_offsets_(edge_offsets), options_(options) {
    const std::size_t n = offsets.size() - 1;
    label_offsets_ = offsets;
    tables_.push_back(0);
    std::map<std::int32_t, std::size_t> rows;  // where the parts of edges of each size begin
    const auto cells = [&](std::int32_t size) {
        std::size_t found = 1;
        for (; size > 0; --size) found = checked_product(found, n_labels);
        return found;
    };
    const auto size_of = [&](std::size_t type) { return options.scopes ? options.sizes[type] : 2; };
    for (std::size_t type = 0; type < options.n_types; ++type) {
        tables_.push_back(checked_product(tables_.back() + cells(size_of(type))));
        rows[size_of(type)] = 0;
    }
    for (auto& [size, begin] : rows) {
        begin = edge_width_;
        edge_width_ = checked_product(edge_width_ + cells(size));
    }
    for (std::size_t type = 0; type < options.n_types; ++type) row_begins_.push_back(rows[size_of(type)]);
    parts_.tables.push_back({n_labels, offsets, offsets.first(n)});
    if (options.with_edges) parts_.tables.push_back({edge_width_, edge_offsets, edge_offsets.first(n)});
    parts_.n_shared = tables_.back();
    std::map<std::vector<std::int32_t>, std::size_t> known;  // by number of nodes, and by edges
    for (std::size_t i = 0; i < n; ++i) {
        std::vector<std::int32_t> shape{static_cast<std::int32_t>(length(i))};
        for (std::size_t e = first_edge(i); e < first_edge(i + 1); ++e) {
            check_edge(i, e);
            if (options.scopes) shape.push_back(-static_cast<std::int32_t>(scope(e).size()));
            shape.insert(shape.end(), scope(e).begin(), scope(e).end());
        }
        const auto [found, is_new] = known.try_emplace(std::move(shape), first_of_shape_.size());
        if (is_new) first_of_shape_.push_back(i);
        shape_of_.push_back(found->second);
    }
}

void GraphParts::check_edge(std::size_t example, std::size_t edge) const {
    const std::span<const std::int32_t> nodes = scope(edge);
    const auto size = static_cast<std::int32_t>(length(example));
    bool is_twice = false, is_inside = true;
    for (std::size_t a = 0; a < nodes.size(); ++a) {
        is_inside &= nodes[a] >= 0 && nodes[a] < size;
        for (std::size_t b = 0; b < a; ++b) is_twice |= nodes[a] == nodes[b];
    }
    if (is_inside && !is_twice) return;
    std::string text = "Example " + std::to_string(example) + " has the edge (";
    for (std::size_t a = 0; a < nodes.size(); ++a) text += (a ? ", " : "") + std::to_string(nodes[a]);
    throw std::invalid_argument(is_twice ? text + "), which joins a node with itself."
                                         : text + "), but its nodes are 0 to " + std::to_string(size - 1) + ".");
}

void GraphParts::list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const {
    out.own[0].assign(labels, labels + length(example));
    out.own[1].assign(options_.with_edges ? n_edges(example) : 0, -1);
    out.shared.clear();
    for (std::size_t e = 0; e < n_edges(example); ++e) {
        const std::size_t edge = first_edge(example) + e, part = part_of(edge, labels);
        out.shared.push_back(static_cast<std::int32_t>(table(type_of(edge)) + part));
        if (options_.with_edges) out.own[1][e] = static_cast<std::int32_t>(row_begin(type_of(edge)) + part);
    }
}

std::string GraphParts::refusal(std::size_t example, const std::int32_t* labels) const {
    if (!options_.limits) return {};
    for (std::size_t edge = first_edge(example); edge < first_edge(example + 1); ++edge) {
        if (options_.limits[table(type_of(edge)) + part_of(edge, labels)] == 0.0) continue;
        const std::span<const std::int32_t> nodes = scope(edge);
        std::string text = "those of nodes " + std::to_string(nodes[0]);
        for (std::size_t a = 1; a < nodes.size(); ++a)
            text += (a + 1 < nodes.size() ? ", " : " and ") + std::to_string(nodes[a]);
        return text + " may not stand at the ends of their edge.";
    }
    return {};
}

}  // namespace dualfield
