// Scores of chains that follow each other, as the passes over chains want them.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "dualfield/core/buffer.hpp"
#include "dualfield/core/sizes.hpp"
#include "dualfield/structures/chains/chain.hpp"
#include "dualfield/structures/chains/chain_scores.hpp"

namespace dualfield {

inline constexpr std::size_t kFewExamples = 64;  // whose offsets fit on the stack: those of a chunk

class LocalScores {
  public:
    LocalScores(const ChainStructure& chain, Examples examples, const ScoreView& view) {
        const ChainTopology& topology = chain.topology();
        const std::size_t n = examples.size(), n_cliques = topology.n_cliques();
        if (n > kFewExamples) {
            more_.resize(2 * (n + 1));
            offsets_ = more_.data();
            edge_offsets_ = more_.data() + n + 1;
        }
        offsets_[0] = edge_offsets_[0] = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const auto length = static_cast<std::int64_t>(chain.length(examples.first + i));
            offsets_[i + 1] = offsets_[i] + length;
            edge_offsets_[i + 1] = edge_offsets_[i] + std::max<std::int64_t>(length - 1, 0);
        }
        const double *edges = chain.with_edges() ? view.own[1] : nullptr, *transition = view.shared;
        if (edges && view.shared) {
            const auto n_edges = static_cast<std::size_t>(edge_offsets_[n]);
            double* sums = edges_.require(std::max<std::size_t>(checked_product(n_edges, n_cliques), 1));
            for (std::size_t e = 0; e < n_edges; ++e)
                for (std::size_t c = 0; c < n_cliques; ++c)
                    sums[e * n_cliques + c] = edges[e * n_cliques + c] + view.shared[c];
            transition = sums;
        } else if (edges) {
            transition = edges;
        }
        const double* ends = chain.with_ends() ? view.shared : nullptr;
        scores = {.offsets = {offsets_, n + 1},
                  .edge_offsets = {edge_offsets_, n + 1},
                  .node = view.own[0],
                  .start = end(ends ? ends + chain.start_begin() : nullptr, chain.start_limits(), chain, start_),
                  .stop = end(ends ? ends + chain.stop_begin() : nullptr, chain.stop_limits(), chain, stop_),
                  .transition = transition,
                  .transition_per_edge = edges != nullptr,
                  .inverse_temperature = view.inverse_temperature};
    }
    LocalScores(const LocalScores&) = delete;
    LocalScores& operator=(const LocalScores&) = delete;

    ChainScores scores;

  private:
    static const double* end(const double* own, const double* limits, const ChainStructure& chain, Buffer& out) {
        if (!limits) return own;
        double* ends = out.require(chain.n_labels());
        for (std::size_t k = 0; k < chain.n_labels(); ++k) ends[k] = limits[k] + (own ? own[k] : 0.0);
        return ends;
    }

    std::array<std::int64_t, 2 * (kFewExamples + 1)> few_;
    std::vector<std::int64_t> more_;
    std::int64_t *offsets_ = few_.data(), *edge_offsets_ = few_.data() + kFewExamples + 1;
    Buffer edges_, start_, stop_;
};

}  // namespace dualfield
