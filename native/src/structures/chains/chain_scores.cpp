#include "dualfield/structures/chains/chain_scores.hpp"

#include <algorithm>

#include "dualfield/core/layout.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

void TransitionTable::fill(const ChainTopology& topology, const double* clique_scores, double inverse_temperature,
                           Domain domain, bool want_forward, bool want_backward) {
    const std::size_t forward_size = padded(topology.forward_size()), backward_size = padded(topology.backward_size());
    double* ahead = want_forward ? forward.require(forward_size) : nullptr;
    double* back = want_backward ? backward.require(backward_size) : nullptr;
    if (ahead) std::fill_n(ahead, forward_size, -kInfinity);
    // What no clique fills is forbidden: minus infinity, whose exponential is zero.
    if (back) std::fill_n(back, backward_size, ahead && domain == Domain::exponential ? 0.0 : -kInfinity);
    double highest = -kInfinity, lowest = kInfinity;
    bad_number = false;
    complete = !topology.has_forbidden();
    const auto cliques = topology.cliques();
    if (topology.is_plain() && complete && clique_scores && ahead) {
        // Scores lie as the table does, but for its padding.
        const std::size_t n = topology.n_labels(), width = topology.width();
        const NumberRange all = routines().range(clique_scores, n * n, inverse_temperature);
        highest = all.highest;
        lowest = all.lowest;
        bad_number = all.bad_number;
        complete = !all.has_minus_infinity;
        for (std::size_t row = 0; row < n; ++row)
            routines().read_row(clique_scores + row * n, nullptr, n, inverse_temperature, ahead + row * width);
    } else {
        for (std::size_t c = 0; c < cliques.size(); ++c) {
            if (!cliques[c].allowed) continue;
            const double score = clique_scores ? clique_scores[c] * inverse_temperature : 0.0;
            bad_number |= !(score < kInfinity);
            highest = std::max(highest, score);
            if (score == -kInfinity)
                complete = false;
            else
                lowest = std::min(lowest, score);
            if (ahead) ahead[cliques[c].forward_entry] = score;
            if (back && !ahead) back[cliques[c].backward_entry] = score;
        }
    }
    const bool any = highest > -kInfinity;
    range = any ? highest - lowest : 0.0;
    shift = 0.0;
    if (domain == Domain::exponential) {
        shift = any ? highest : 0.0;
        if (ahead)
            routines().exponentials(ahead, shift, forward_size, ahead);
        else if (back)
            routines().exponentials(back, shift, backward_size, back);
    }
    // The same numbers once more, in another order.
    if (ahead && back) {
        const std::size_t n = topology.n_labels(), width = topology.width();
        if (topology.is_plain()) {
            for (std::size_t row = 0; row < n; ++row)
                for (std::size_t k = 0; k < n; ++k) back[k * width + row] = ahead[row * width + k];
        } else {
            for (const auto& clique : cliques) back[clique.backward_entry] = ahead[clique.forward_entry];
        }
    }
}

}  // namespace dualfield
