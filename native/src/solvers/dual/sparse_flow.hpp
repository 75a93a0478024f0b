// Distributions over the labellings of chains that put their mass on few of them: for each node the edges that lead
// into it, with their masses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "dualfield/solvers/solver_state.hpp"
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

    SolverState state() const {
        std::vector<std::uint64_t> counts, labels;
        std::vector<double> masses;
        for (std::size_t row = 0; row < n_rows(); ++row) {
            counts.push_back(edges(row).size());
            for (const FlowEdge& edge : edges(row)) {
                labels.push_back(edge.from);
                labels.push_back(edge.to);
                masses.push_back(edge.mass);
            }
        }
        return {
            {"edge_counts", std::move(counts)}, {"edge_labels", std::move(labels)}, {"edge_masses", std::move(masses)}};
    }

  protected:
    // Into a flow that is empty; is_known(row, from, to) says whether there are such labels.
    template <class IsKnown>
    void read_edges(const SolverState& state, const IsKnown& is_known) {
        const StateReader reader(state);
        std::vector<std::uint64_t> counts(n_rows());
        reader("edge_counts", counts);
        const std::size_t size = reader.find<double>("edge_masses").size();
        std::vector<double> masses(size);
        reader("edge_masses", masses);
        std::vector<std::uint64_t> labels(2 * size);
        reader("edge_labels", labels);
        std::size_t at = 0;
        for (std::size_t row = 0; row < counts.size(); ++row) {
            if (counts[row] > size - at) throw StateError("edge_counts do not add up to the number of edges");
            for (const std::size_t end = at + counts[row]; at < end; ++at) {
                if (!is_known(row, labels[2 * at], labels[2 * at + 1]) || !(masses[at] > 0.0))
                    throw StateError("the flow has an edge of an unknown label or without mass");
                add(row, static_cast<std::uint32_t>(labels[2 * at]), static_cast<std::uint32_t>(labels[2 * at + 1]),
                    masses[at]);
            }
        }
        if (at != size) throw StateError("edge_counts do not add up to the number of edges");
    }
    void set_mass(std::size_t row, std::size_t edge, double mass) { pool_[spots_[row].begin + edge].mass = mass; }
    template <class Condition>
    void drop(std::size_t row, Condition&& condition) {
        Spot& spot = spots_[row];
        FlowEdge* own = pool_.data() + spot.begin;
        spot.count = static_cast<std::uint16_t>(std::remove_if(own, own + spot.count, condition) - own);
    }

  private:
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
