#include "dualfield/objectives/chain_model.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "dualfield/core/parallel.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {
namespace {

constexpr std::size_t kChunkNodes = 2048, kChunkExamples = 64;
constexpr std::size_t kChunkCliques = std::size_t{1} << 18;  // clique numbers that a chunk may hold

}  // namespace

NodeFeatures::NodeFeatures(const ChainModel& model, const ChainData& data, bool with_plan)
    : map_(*model.node), rows_(data.rows) {
    if (with_plan && !data.rows.dense) plan_.emplace(map_, rows_, data.n_nodes());
}

void NodeFeatures::score(const double* w, std::size_t first, std::size_t last, double* out, double* scratch) const {
    if (plan_) return routines().score_plan(map_, *plan_, w, first, last, out, scratch);
    routines().score_rows(map_, rows_, w, first, last, out, scratch);
}

double NodeFeatures::add(const double* d, double scale, std::size_t first, std::size_t last, double* w,
                         double* scratch) const {
    if (plan_) return routines().add_plan(map_, *plan_, d, scale, first, last, w, scratch);
    return routines().add_rows(map_, rows_, d, scale, first, last, w, scratch);
}

const double* ChunkScores::end_scores(const double* w, const double* limits, Buffer& out) const {
    if (!limits) return w;
    const std::size_t n = model_.topology->n_labels();
    double* ends = out.require(n);
    for (std::size_t k = 0; k < n; ++k) ends[k] = limits[k] + (w ? w[k] : 0.0);
    return ends;
}

const ChainScores& ChunkScores::compute(const double* w, double scale, std::size_t first, std::size_t last,
                                        bool with_cost) {
    const std::size_t n_labels = model_.topology->n_labels(), n_cliques = model_.topology->n_cliques();
    const std::size_t row = data_.first(first), n_rows = data_.first(last) - row;
    offsets_.assign(1, 0);
    edge_offsets_.assign(1, 0);
    for (std::size_t i = first; i < last; ++i) {
        const auto length = static_cast<std::int64_t>(data_.length(i));
        offsets_.push_back(offsets_.back() + length);
        edge_offsets_.push_back(edge_offsets_.back() + std::max<std::int64_t>(length - 1, 0));
    }
    double* node = node_.require(checked_product(n_rows, n_labels));
    double* scratch = scratch_.require(2 * padded(std::max(n_labels, n_cliques)));
    features_.score(w, row, row + n_rows, node, scratch);
    if (with_cost && data_.cost)
        for (std::size_t t = 0; t < n_rows; ++t)
            for (std::size_t k = 0; k < n_labels; ++k)
                node[t * n_labels + k] +=
                    data_.cost[static_cast<std::size_t>(data_.labels[row + t]) * n_labels + k] / scale;
    const double* cliques = w + model_.clique_begin();
    if (model_.pair) {
        double* edges = edges_.require(checked_product(n_edges(), n_cliques));
        for (std::size_t i = first; i < last; ++i) {
            if (data_.length(i) < 2) continue;
            const std::size_t begin = data_.first(i) + 1, end = data_.first(i + 1);
            routines().score_rows(*model_.pair, data_.pair_rows, w + model_.pair_begin(), begin, end, edges, scratch);
            for (std::size_t t = begin; t < end; ++t, edges += n_cliques)
                for (std::size_t c = 0; c < n_cliques; ++c) edges[c] += cliques[c];
        }
    }
    scores_ = {.offsets = offsets_,
               .edge_offsets = edge_offsets_,
               .node = node,
               .start = end_scores(model_.with_ends ? w + model_.start_begin() : nullptr, model_.start_limits, start_),
               .stop = end_scores(model_.with_ends ? w + model_.stop_begin() : nullptr, model_.stop_limits, stop_),
               .transition = model_.pair ? edges_.data() : cliques,
               .transition_per_edge = model_.pair != nullptr,
               .inverse_temperature = data_.temperature > 0.0 ? scale / data_.temperature : scale};
    return scores_;
}

void ChunkScores::forbid(std::size_t first, std::size_t last) {
    const std::size_t n = model_.topology->n_labels();
    const std::uint8_t* allowed = data_.allowed + data_.first(first) * n;
    const std::size_t count = (data_.first(last) - data_.first(first)) * n;
    for (std::size_t i = 0; i < count; ++i)
        if (!allowed[i]) node_.data()[i] = -kInfinity;
}

std::vector<std::size_t> cut_into_chunks(const ChainModel& model, const ChainData& data) {
    const std::size_t n_cliques = model.topology->n_cliques();
    const std::size_t most_examples = std::clamp<std::size_t>(kChunkCliques / n_cliques, 4, kChunkExamples);
    const std::size_t most_nodes =
        model.pair ? std::clamp<std::size_t>(kChunkCliques / n_cliques, 16, kChunkNodes) : kChunkNodes;
    std::vector<std::size_t> chunks{0};
    std::size_t nodes = 0;
    for (std::size_t i = 0; i < data.n_examples(); ++i) {
        const std::size_t length = data.length(i);
        if (i > chunks.back() && (i - chunks.back() >= most_examples || nodes + length > most_nodes)) {
            chunks.push_back(i);
            nodes = 0;
        }
        nodes += length;
    }
    if (data.n_examples() > 0) chunks.push_back(data.n_examples());
    return chunks;
}

void tag(const ChainModel& model, const ChainData& data, const double* w, std::size_t n_threads, bool with_cost,
         std::int32_t* labels) {
    const std::vector<std::size_t> chunks = cut_into_chunks(model, data);
    const NodeFeatures features(model, data, false);
    std::vector<ChunkScores> workers = one_for_each<ChunkScores>(n_threads, model, data, features);
    parallel_for(chunks.size() - 1, n_threads, [&](std::size_t worker, std::size_t c) {
        const ChainScores& scores = workers[worker].compute(w, 1.0, chunks[c], chunks[c + 1], with_cost);
        ChainOracle oracle(*model.topology, scores, 1);
        oracle.argmax(labels + data.first(chunks[c]));
        for (std::size_t i = chunks[c]; i < chunks[c + 1]; ++i) {
            const Status status = oracle.statuses()[i - chunks[c]];
            if (status == Status::ok) continue;
            throw std::invalid_argument(
                status == Status::impossible
                    ? "Example " + std::to_string(i) + " has no allowed labelling: the constraints leave none."
                    : "The scores of example " + std::to_string(i) + " are not finite: its features are too large.");
        }
    });
}

void score_nodes(const ChainModel& model, const ChainData& data, const double* w, std::size_t n_threads, double* node,
                 double* edges) {
    const std::size_t n_labels = model.topology->n_labels(), n_cliques = model.topology->n_cliques();
    const std::vector<std::size_t> chunks = cut_into_chunks(model, data);
    std::vector<std::size_t> first_edge{0};
    for (std::size_t i = 0; i < data.n_examples(); ++i)
        first_edge.push_back(first_edge.back() + std::max<std::size_t>(data.length(i), 1) - 1);
    const NodeFeatures features(model, data, false);
    std::vector<ChunkScores> workers = one_for_each<ChunkScores>(n_threads, model, data, features);
    parallel_for(chunks.size() - 1, n_threads, [&](std::size_t worker, std::size_t c) {
        ChunkScores& chunk = workers[worker];
        const ChainScores& scores = chunk.compute(w, 1.0, chunks[c], chunks[c + 1], false);
        std::copy_n(chunk.node(), chunk.n_nodes() * n_labels, node + data.first(chunks[c]) * n_labels);
        if (edges)
            std::copy_n(scores.transition, chunk.n_edges() * n_cliques, edges + first_edge[chunks[c]] * n_cliques);
    });
}

}  // namespace dualfield
