// Distributions over the labellings of chains that put their mass on few of them: for each node the edges that lead
// into it, with their masses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "dualfield/vocabulary.hpp"

namespace dualfield {

// From the label of the node before to the label of this one; at the first node of a chain `from` is 0.
struct FlowEdge {
    std::uint32_t from, to;
    double mass;
};

class SparseFlow {
  public:
    explicit SparseFlow(std::size_t n_rows) : spots_(n_rows), n_labels_(n_rows, 0) {}

    std::size_t n_rows() const { return spots_.size(); }
    std::span<const FlowEdge> edges(std::size_t row) const {
        const Spot& spot = spots_[row];
        return {pool_.data() + spot.begin, spot.count};
    }
    // How many labels have mass at a node, at most 255.
    std::uint8_t n_labels(std::size_t row) const { return n_labels_[row]; }

    double mass(std::size_t row, std::uint32_t from, std::uint32_t to) const {
        for (const FlowEdge& edge : edges(row))
            if (edge.from == from && edge.to == to) return edge.mass;
        return 0.0;
    }

    // Adds to the mass of an edge; one that has next to none left is dropped.
    void add(std::size_t row, std::uint32_t from, std::uint32_t to, double change) {
        Spot& spot = spots_[row];
        FlowEdge* own = pool_.data() + spot.begin;
        for (std::uint32_t e = 0; e < spot.count; ++e) {
            if (own[e].from != from || own[e].to != to) continue;
            own[e].mass += change;
            if (own[e].mass <= kNothing) std::copy(own + e + 1, own + spot.count--, own + e);
            return;
        }
        if (change > kNothing) append(spot, {from, to, change});
    }
    // After a change of the edges of a node.
    void count_labels(std::size_t row) {
        std::size_t n = 0;
        const auto own = edges(row);
        for (std::size_t e = 0; e < own.size(); ++e) {
            bool is_new = true;
            for (std::size_t before = 0; before < e; ++before) is_new = is_new && own[before].to != own[e].to;
            n += is_new;
        }
        n_labels_[row] = static_cast<std::uint8_t>(std::min<std::size_t>(n, 255));
    }

    // Lays the edges of neighbouring nodes side by side again.
    void compact() {
        std::vector<FlowEdge, TableAllocator<FlowEdge>> pool;
        std::size_t total = 0;
        for (const Spot& spot : spots_) total += spot.count + (spot.count > 1);
        pool.reserve(total + total / 4);
        for (Spot& spot : spots_) {
            const auto begin = static_cast<std::uint32_t>(pool.size());
            pool.insert(pool.end(), pool_.begin() + spot.begin, pool_.begin() + spot.begin + spot.count);
            // Where there is more than one edge another one may come.
            spot.capacity = static_cast<std::uint16_t>(spot.count + (spot.count > 1));
            pool.resize(begin + spot.capacity);
            spot.begin = begin;
        }
        pool_.swap(pool);
    }

  private:
    static constexpr double kNothing = 1e-12;
    // Up to here a spot can be doubled without an overflow of the small numbers that describe it.
    static constexpr std::size_t kMostEdges = 0x7fff, kMostPool = 0xffffffff - 0xffff;
    struct Spot {
        std::uint32_t begin = 0;
        std::uint16_t count = 0, capacity = 0;
    };

    void append(Spot& spot, const FlowEdge& edge) {
        if (spot.count == spot.capacity) {
            if (spot.count > kMostEdges || pool_.size() > kMostPool)
                throw std::length_error("a flow has more edges than there is room for");
            const auto begin = static_cast<std::uint32_t>(pool_.size());
            const auto capacity = static_cast<std::uint16_t>(spot.count == 0 ? 1 : 2 * spot.count);
            pool_.resize(pool_.size() + capacity);
            std::copy_n(pool_.begin() + spot.begin, spot.count, pool_.begin() + begin);
            spot.begin = begin;
            spot.capacity = capacity;
        }
        pool_[spot.begin + spot.count++] = edge;
    }

    std::vector<Spot, TableAllocator<Spot>> spots_;
    std::vector<FlowEdge, TableAllocator<FlowEdge>> pool_;
    std::vector<std::uint8_t> n_labels_;
};

}  // namespace dualfield
