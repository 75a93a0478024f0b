// Distributions over the labellings of chains that put their mass on few of them: for each node the edges that lead
// into it, with their masses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "dualfield/text/vocabulary.hpp"

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

    // Makes a distribution over labellings of the edges of an example again: what was dropped, and rounding, leave
    // nodes that get a little more or less mass than leaves them, and no bound holds at such a point.
    void balance(std::size_t first, std::size_t length) {
        for (std::size_t t = length; t-- > 1;)  // what leads nowhere
            drop(first + t - 1, [&](const FlowEdge& edge) { return leaving(first + t, edge.to) == 0.0; });
        for (std::size_t t = 0; t < length; ++t) {
            const std::size_t row = first + t;
            if (t > 0)  // what comes from nowhere
                drop(row, [&](const FlowEdge& edge) { return arriving(row - 1, edge.from) == 0.0; });
            FlowEdge* own = pool_.data() + spots_[row].begin;
            old_.assign(own, own + spots_[row].count);
            for (std::size_t e = 0; e < old_.size(); ++e) {
                double sum = 0.0;
                for (const FlowEdge& other : old_) sum += t == 0 || other.from == old_[e].from ? other.mass : 0.0;
                own[e].mass = (t == 0 ? 1.0 : arriving(row - 1, own[e].from)) * (old_[e].mass / sum);
            }
            count_labels(row);
        }
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
    template <class Condition>
    void drop(std::size_t row, Condition&& condition) {
        Spot& spot = spots_[row];
        FlowEdge* own = pool_.data() + spot.begin;
        spot.count = static_cast<std::uint16_t>(std::remove_if(own, own + spot.count, condition) - own);
    }
    double arriving(std::size_t row, std::uint32_t label) const {
        double sum = 0.0;
        for (const FlowEdge& edge : edges(row)) sum += edge.to == label ? edge.mass : 0.0;
        return sum;
    }
    double leaving(std::size_t row, std::uint32_t label) const {
        double sum = 0.0;
        for (const FlowEdge& edge : edges(row)) sum += edge.from == label ? edge.mass : 0.0;
        return sum;
    }

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
    std::vector<FlowEdge> old_;
};

}  // namespace dualfield
