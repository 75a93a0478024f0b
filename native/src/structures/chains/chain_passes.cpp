#include "dualfield/structures/chains/chain_passes.hpp"

namespace dualfield {

double node_score(const ChainScores& scores, std::size_t n_labels, std::size_t example, std::size_t t,
                  std::size_t label) {
    const std::size_t at = (static_cast<std::size_t>(scores.offsets[example]) + t) * n_labels + label;
    double score = scores.node[at];
    if (scores.cost) score += scores.cost[at];
    if (scores.start && t == 0) score += scores.start[label];
    if (scores.stop && t + 1 == scores.length(example)) score += scores.stop[label];
    return score * scores.inverse_temperature;
}

}  // namespace dualfield
