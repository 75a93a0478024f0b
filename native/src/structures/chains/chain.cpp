// Chains behind the interface of structures: part layout, scores of a few examples, one example at a time.
#include "dualfield/structures/chains/chain.hpp"

#include <algorithm>

#include "dualfield/structures/chains/chain_block.hpp"
#include "dualfield/structures/chains/chain_queries.hpp"
#include "local_scores.hpp"

namespace dualfield {
namespace {

// Node scores with those of the ends in them, and no edges: what the code for one example is made for.
class OneChain final : public Block {
  public:
    explicit OneChain(const ChainStructure& chain)
        : chain_(chain),
          block_(chain.topology(), chain.start_limits(), chain.stop_limits()),
          plain_(chain.Structure::block()) {}

    Answer marginals(std::size_t example, const ScoreView& scores, const PartSums& sums) override {
        if (chain_.with_edges() || chain_.length(example) == 0) return plain_->marginals(example, scores, sums);
        const auto [value, status] =
            block_.marginals(nodes(example, scores), chain_.length(example), scores.shared, sums.own[0], sums.shared);
        if (chain_.with_ends()) copy_ends(chain_, chain_.length(example), sums.own[0], sums.shared);
        return {value, status};
    }
    Answer best(std::size_t example, const ScoreView& scores, std::int32_t* labels) override {
        if (chain_.with_edges() || chain_.length(example) == 0) return plain_->best(example, scores, labels);
        const auto [value, status] = block_.best(nodes(example, scores), chain_.length(example), scores.shared, labels);
        return {value, status};
    }

    // The first and the last row of node marginals are those of the ends.
    static void copy_ends(const ChainStructure& chain, std::size_t length, const double* nodes, double* shared) {
        const std::size_t n = chain.n_labels();
        std::fill_n(shared + chain.start_begin(), 2 * n, 0.0);
        if (length == 0) return;
        std::copy_n(nodes, n, shared + chain.start_begin());
        std::copy_n(nodes + (length - 1) * n, n, shared + chain.stop_begin());
    }

  private:
    const double* nodes(std::size_t example, const ScoreView& scores) {
        if (!chain_.with_ends()) return scores.own[0];
        const std::size_t n = chain_.n_labels(), size = chain_.length(example) * n;
        double* out = nodes_.require(size + kLanes);
        std::copy_n(scores.own[0], size, out);
        for (std::size_t k = 0; k < n; ++k) {
            out[k] += scores.shared[chain_.start_begin() + k];
            out[size - n + k] += scores.shared[chain_.stop_begin() + k];
        }
        return out;
    }

    const ChainStructure& chain_;
    ChainBlock block_;
    std::unique_ptr<Block> plain_;
    Buffer nodes_;
};

}  // namespace

ChainStructure::ChainStructure(const ChainTopology& topology, std::span<const std::int64_t> offsets,
                               const Options& options)
    : topology_(topology), options_(options), edge_offsets_{0} {
    const std::size_t n = offsets.size() - 1;
    label_offsets_ = offsets;
    parts_.tables.push_back({topology.n_labels(), offsets, offsets.first(n)});
    parts_.n_shared = topology.n_cliques() + (options.with_ends ? 2 * topology.n_labels() : 0);
    if (!options.with_edges) return;
    for (std::size_t i = 0; i < n; ++i) {
        edge_offsets_.push_back(edge_offsets_.back() + std::max<std::int64_t>(offsets[i + 1] - offsets[i] - 1, 0));
        edge_rows_.push_back(offsets[i] + 1);
    }
    parts_.tables.push_back({topology.n_cliques(), edge_offsets_, edge_rows_});
}

void ChainStructure::log_partition(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                   Status* statuses) const {
    const LocalScores local(*this, examples, view);
    ChainQueries(topology_, local.scores, n_threads, statuses).log_partition(out);
}

void ChainStructure::marginals(Examples examples, const ScoreView& view, std::size_t n_threads, const PartSums& sums,
                               double* out, Status* statuses) const {
    const LocalScores local(*this, examples, view);
    ChainQueries queries(topology_, local.scores, n_threads, statuses);
    const std::size_t n_cliques = topology_.n_cliques(), n = examples.size();
    double* edges = with_edges() ? sums.own[1] : nullptr;
    if (edges) {
        queries.marginals(sums.own[0], CliqueOutput::each, edges, out);
    } else if (!sums.shared) {
        return queries.marginals(sums.own[0], CliqueOutput::none, nullptr, out);
    } else if (!with_ends()) {
        return queries.marginals(sums.own[0], CliqueOutput::sum, sums.shared, out);
    } else {
        // Cliques of all examples first, each then to its place, from the last to the first.
        queries.marginals(sums.own[0], CliqueOutput::sum, sums.shared, out);
        for (std::size_t i = n; i-- > 1;)
            std::copy_backward(sums.shared + i * n_cliques, sums.shared + (i + 1) * n_cliques,
                               sums.shared + i * parts_.n_shared + n_cliques);
    }
    if (!sums.shared) return;
    for (std::size_t i = 0; i < n; ++i) {
        double* shared = sums.shared + i * parts_.n_shared;
        if (edges) {
            std::fill_n(shared, n_cliques, 0.0);
            for (std::int64_t e = local.scores.edge_offsets[i]; e < local.scores.edge_offsets[i + 1]; ++e)
                for (std::size_t c = 0; c < n_cliques; ++c)
                    shared[c] += edges[static_cast<std::size_t>(e) * n_cliques + c];
        }
        const double* nodes = sums.own[0] + static_cast<std::size_t>(local.scores.offsets[i]) * n_labels();
        if (with_ends()) OneChain::copy_ends(*this, local.scores.length(i), nodes, shared);
    }
}

void ChainStructure::maximum(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                             Status* statuses) const {
    const LocalScores local(*this, examples, view);
    ChainQueries(topology_, local.scores, n_threads, statuses).maximum(out);
}

void ChainStructure::argmax(Examples examples, const ScoreView& view, std::size_t n_threads, std::int32_t* labels,
                            Status* statuses) const {
    const LocalScores local(*this, examples, view);
    ChainQueries(topology_, local.scores, n_threads, statuses).argmax(labels);
}

void ChainStructure::score(Examples examples, const ScoreView& view, std::size_t n_threads, const std::int32_t* labels,
                           double* out, Status* statuses) const {
    const LocalScores local(*this, examples, view);
    ChainQueries(topology_, local.scores, n_threads, statuses).score(labels, out);
}

void ChainStructure::max_marginals(Examples examples, const ScoreView& view, std::size_t n_threads, double* own,
                                   Status* statuses) const {
    const LocalScores local(*this, examples, view);
    ChainQueries(topology_, local.scores, n_threads, statuses).max_marginals(own);
}

void ChainStructure::entropy(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                             Status* statuses) const {
    const LocalScores local(*this, examples, view);
    ChainQueries(topology_, local.scores, n_threads, statuses).entropy(out);
}

void ChainStructure::sample(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t n_samples,
                            std::uint64_t seed, std::int32_t* labels, Status* statuses) const {
    const LocalScores local(*this, examples, view);
    ChainQueries(topology_, local.scores, n_threads, statuses).sample(n_samples, seed, labels);
}

void ChainStructure::k_best(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t k,
                            std::int32_t* labels, double* scores, Status* statuses) const {
    const LocalScores local(*this, examples, view);
    ChainQueries(topology_, local.scores, n_threads, statuses).k_best(k, labels, scores);
}

void ChainStructure::list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const {
    const std::int64_t offsets[2] = {0, static_cast<std::int64_t>(length(example))};
    const std::size_t n_edges = std::max<std::size_t>(length(example), 1) - 1;
    std::vector<std::int64_t> cliques(n_edges);
    clique_indices(topology_, offsets, labels, cliques.data());
    out.own[0].assign(labels, labels + length(example));
    out.shared.assign(cliques.begin(), cliques.end());
    if (with_edges()) out.own[1] = out.shared;
    if (!with_ends() || length(example) == 0) return;
    out.shared.push_back(static_cast<std::int32_t>(start_begin()) + labels[0]);
    out.shared.push_back(static_cast<std::int32_t>(stop_begin()) + labels[length(example) - 1]);
}

std::string ChainStructure::refusal(std::size_t example, const std::int32_t* labels) const {
    if (length(example) == 0) return {};
    if (options_.start_limits && options_.start_limits[labels[0]] != 0.0) return "the first one may not stand first.";
    if (options_.stop_limits && options_.stop_limits[labels[length(example) - 1]] != 0.0)
        return "the last one may not stand last.";
    PartList parts;
    list_parts(example, labels, parts);
    for (std::size_t e = 0; e + 1 < length(example); ++e)
        if (parts.shared[e] < 0 || !topology_.cliques()[static_cast<std::size_t>(parts.shared[e])].allowed)
            return "one may not follow the one before it.";
    return {};
}

double ChainStructure::score_parts(std::size_t example, const ScoreView& scores, const PartSpan& parts) const {
    const std::size_t n = n_labels(), n_cliques = topology_.n_cliques();
    const double* edges = with_edges() ? scores.own[1] : nullptr;
    double total = 0.0;
    for (std::size_t t = 0; t < length(example); ++t) {
        total += scores.own[0][t * n + static_cast<std::size_t>(parts.own[0][t])];
        if (t == 0) continue;
        const auto clique = static_cast<std::size_t>(parts.shared[t - 1]);
        total += edges ? edges[(t - 1) * n_cliques + clique] + scores.shared[clique] : scores.shared[clique];
    }
    for (std::size_t at = std::max<std::size_t>(length(example), 1) - 1; at < parts.shared.size(); ++at)
        total += scores.shared[parts.shared[at]];
    return total;
}

std::unique_ptr<Block> ChainStructure::block() const {
    return std::make_unique<OneChain>(*this);
}

}  // namespace dualfield
