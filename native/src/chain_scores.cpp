#include "dualfield/chain_scores.hpp"

#include <algorithm>

#include "dualfield/layout.hpp"
#include "dualfield/routines.hpp"

namespace dualfield {

void TransitionTable::fill(const ChainTopology& topology, const double* clique_scores, double inverse_temperature,
                           Domain domain, bool want_forward, bool want_backward) {
    const std::size_t forward_size = padded(topology.forward_size()), backward_size = padded(topology.backward_size());
    double* ahead = want_forward ? forward.require(forward_size) : nullptr;
    double* back = want_backward ? backward.require(backward_size) : nullptr;
    if (ahead) std::fill_n(ahead, forward_size, -kInfinity);
    if (back) std::fill_n(back, backward_size, -kInfinity);
    double highest = -kInfinity, lowest = kInfinity;
    bad_number = false;
    complete = !topology.has_forbidden();
    const auto cliques = topology.cliques();
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
        if (back) back[cliques[c].backward_entry] = score;
    }
    const bool any = highest > -kInfinity;
    range = any ? highest - lowest : 0.0;
    shift = 0.0;
    if (domain == Domain::logarithm) return;
    shift = any ? highest : 0.0;
    if (ahead) routines().exponentials(ahead, shift, forward_size, ahead);
    if (back) routines().exponentials(back, shift, backward_size, back);
}

}  // namespace dualfield
