// The scores of a batch of chains as native code sees them, and the tables that a dynamic programme multiplies with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/layout.hpp"
#include "dualfield/structures/chains/chain_topology.hpp"

namespace dualfield {

// Examples one after another: example i has nodes offsets[i] ... offsets[i + 1] - 1 and one edge for each node but its
// first.
struct ChainScores {
    std::span<const std::int64_t> offsets;       // [n + 1]
    std::span<const std::int64_t> edge_offsets;  // [n + 1]
    const double* node = nullptr;                // [N][K]
    const double* cost = nullptr;                // [N][K], added to node; may be null
    const double* start = nullptr;               // [K], added at the first node; may be null
    const double* stop = nullptr;                // [K], added at the last node; may be null
    const double* transition = nullptr;          // [n_cliques] shared, or [E][n_cliques]; null: zeros
    bool transition_per_edge = false;
    double inverse_temperature = 1.0;  // scores are multiplied by it

    std::size_t n_examples() const { return offsets.size() - 1; }
    std::size_t n_nodes() const { return static_cast<std::size_t>(offsets.back()); }
    std::size_t length(std::size_t example) const {
        return static_cast<std::size_t>(offsets[example + 1] - offsets[example]);
    }
    // Scores of the cliques that end at node t >= 1 of an example, or null for zeros.
    const double* transition_at(std::size_t example, std::size_t t, std::size_t n_cliques) const {
        if (!transition || !transition_per_edge) return transition;
        return transition + (static_cast<std::size_t>(edge_offsets[example]) + t - 1) * n_cliques;
    }
};

// Whether a programme adds scores or multiplies their exponentials.
enum class Domain { logarithm, exponential };

// Clique scores laid out for products: the forward table [in][out] and its transpose, block by block.
// In the exponential domain entries are exp(score - shift), so that the largest is 1.
struct TransitionTable {
    Buffer forward, backward;
    double shift = 0.0;
    double range = 0.0;       // largest minus smallest finite score
    bool bad_number = false;  // NaN or +inf among the scores
    bool complete = true;     // no entry is forbidden: every state reaches every other in one step

    void fill(const ChainTopology& topology, const double* clique_scores, double inverse_temperature, Domain domain,
              bool want_forward, bool want_backward);
};

}  // namespace dualfield
