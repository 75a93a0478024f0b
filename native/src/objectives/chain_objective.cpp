// Losses of all examples and their gradient.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "dualfield/core/parallel.hpp"
#include "dualfield/objectives/chain_model.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {
namespace {

// Each shard has a gradient of its own, and they are added up in order: so many that the sums are a small part of the
// work, whatever the number of threads.
constexpr std::size_t kMostShards = 8;

}  // namespace

ChainTruth::ChainTruth(const ChainModel& model, const ChainData& data) {
    first_edge_.assign(1, 0);
    for (std::size_t i = 0; i < data.n_examples(); ++i)
        first_edge_.push_back(first_edge_.back() + static_cast<std::int64_t>(std::max<std::size_t>(data.length(i), 1)) -
                              1);
    if (data.allowed) return;
    cliques_.resize(static_cast<std::size_t>(first_edge_.back()));
    clique_indices(*model.topology, data.offsets, data.labels, cliques_.data());
    check(model, data);
}

void ChainTruth::check(const ChainModel& model, const ChainData& data) const {
    const auto refuse = [](std::size_t i, const char* what) {
        throw std::invalid_argument("The labels of example " + std::to_string(i) + " are not allowed: " + what);
    };
    const auto label_at = [&](std::size_t row) { return static_cast<std::size_t>(data.labels[row]); };
    for (std::size_t i = 0; i < data.n_examples(); ++i) {
        if (data.length(i) == 0) continue;
        if (model.start_limits && model.start_limits[label_at(data.first(i))] != 0.0)
            refuse(i, "the first one may not stand first.");
        if (model.stop_limits && model.stop_limits[label_at(data.first(i + 1) - 1)] != 0.0)
            refuse(i, "the last one may not stand last.");
        for (std::int64_t e = first_edge_[i]; e < first_edge_[i + 1]; ++e) {
            const std::int64_t clique = cliques_[static_cast<std::size_t>(e)];
            if (clique < 0 || !model.topology->cliques()[static_cast<std::size_t>(clique)].allowed)
                refuse(i, "one may not follow the one before it.");
        }
    }
}

ChainObjective::ChainObjective(const ChainModel& model, const ChainData& data, std::size_t n_threads)
    : model_(model),
      data_(data),
      features_(model, data, true),
      n_threads_(std::max<std::size_t>(n_threads, 1)),
      chunks_(cut_into_chunks(model, data)),
      truth_(model, data) {
    const std::size_t entries = data.rows.dense
                                    ? data.n_nodes() * data.rows.n_columns
                                    : static_cast<std::size_t>(data.rows.indptr ? data.rows.indptr[data.n_nodes()] : 0);
    const std::size_t n_shards =
        std::clamp<std::size_t>(entries / std::max<std::size_t>(model.size(), 1), 1, kMostShards);
    const std::size_t n_chunks = chunks_.size() - 1;
    for (std::size_t s = 0; s <= n_shards; ++s) shards_.push_back(n_chunks * s / n_shards);
}

double ChainObjective::true_score(const ChainScores& scores, std::size_t example, std::size_t local) const {
    const std::size_t n_labels = model_.topology->n_labels(), n_cliques = model_.topology->n_cliques();
    const std::size_t length = data_.length(example), row = static_cast<std::size_t>(scores.offsets[local]);
    if (length == 0) return 0.0;
    const std::int32_t* labels = data_.labels + data_.first(example);
    double total = 0.0;
    for (std::size_t t = 0; t < length; ++t) {
        total += scores.node[(row + t) * n_labels + static_cast<std::size_t>(labels[t])];
        if (t == 0) continue;
        const std::int64_t edge = truth_.first_edge(example) + static_cast<std::int64_t>(t) - 1;
        total += scores.transition_at(local, t, n_cliques)[truth_.clique(edge)];
    }
    if (scores.start) total += scores.start[labels[0]];
    if (scores.stop) total += scores.stop[labels[length - 1]];
    return total;
}

// From marginals to marginals minus the indicator of the truth.
void ChainObjective::subtract_truth(Worker& worker, std::size_t first, std::size_t last) const {
    const std::size_t n_labels = model_.topology->n_labels(), n_cliques = model_.topology->n_cliques();
    double* nodes = worker.nodes.data();
    for (std::size_t row = data_.first(first); row < data_.first(last); ++row, nodes += n_labels)
        nodes[data_.labels[row]] -= 1.0;
    double* cliques = worker.cliques.data();
    for (std::size_t i = first; i < last; ++i) {
        for (std::int64_t e = truth_.first_edge(i); e < truth_.first_edge(i + 1); ++e) {
            cliques[truth_.clique(e)] -= 1.0;
            if (model_.pair) cliques += n_cliques;
        }
        if (!model_.pair) cliques += n_cliques;
    }
}

// target += factor * c_i A_i' marginals, for marginals in the worker.
void ChainObjective::add_gradient(Worker& worker, std::size_t first, std::size_t last,
                                  const GradientTarget& target) const {
    const std::size_t n_labels = model_.topology->n_labels(), n_cliques = model_.topology->n_cliques();
    double* scratch = worker.scratch.require(2 * padded(std::max(n_labels, n_cliques)));
    const double* nodes = worker.nodes.data();
    const double* cliques = worker.cliques.data();
    double* gradient = target.vector;
    double* shared = gradient + model_.clique_begin();
    for (std::size_t i = first; i < last; ++i) {
        const std::size_t length = data_.length(i), row = data_.first(i);
        const double scale = target.factor * data_.weights[i];
        features_.add(nodes, scale, row, row + length, gradient, scratch);
        if (model_.with_ends && length > 0)
            for (std::size_t k = 0; k < n_labels; ++k) {
                gradient[model_.start_begin() + k] += scale * nodes[k];
                gradient[model_.stop_begin() + k] += scale * nodes[(length - 1) * n_labels + k];
            }
        nodes += length * n_labels;
        const auto add_cliques = [&] {
            for (std::size_t c = 0; c < n_cliques; ++c) shared[c] += scale * cliques[c] * model_.clique_mask[c];
            cliques += n_cliques;
        };
        if (!model_.pair) {
            add_cliques();
        } else if (length > 1) {
            routines().add_rows(*model_.pair, data_.pair_rows, cliques, scale, row + 1, row + length,
                                gradient + model_.pair_begin(), scratch);
            for (std::size_t t = 1; t < length; ++t) add_cliques();
        }
    }
}

// The indicator of worker.labels, laid out as marginals are.
void ChainObjective::indicate(Worker& worker, const ChainScores& scores) const {
    const std::size_t n_labels = model_.topology->n_labels(), n_cliques = model_.topology->n_cliques();
    const auto n_edges = static_cast<std::size_t>(scores.edge_offsets.back());
    worker.chosen.resize(n_edges);
    clique_indices(*model_.topology, scores.offsets, worker.labels.data(), worker.chosen.data());
    double* nodes = worker.nodes.require(checked_product(scores.n_nodes(), n_labels));
    std::fill_n(nodes, scores.n_nodes() * n_labels, 0.0);
    for (std::size_t row = 0; row < scores.n_nodes(); ++row)
        nodes[row * n_labels + static_cast<std::size_t>(worker.labels[row])] = 1.0;
    const std::size_t clique_rows = model_.pair ? n_edges : scores.n_examples();
    double* cliques = worker.cliques.require(checked_product(std::max<std::size_t>(clique_rows, 1), n_cliques));
    std::fill_n(cliques, clique_rows * n_cliques, 0.0);
    for (std::size_t i = 0; i < scores.n_examples(); ++i)
        for (std::int64_t e = scores.edge_offsets[i]; e < scores.edge_offsets[i + 1]; ++e)
            cliques[(model_.pair ? static_cast<std::size_t>(e) : i) * n_cliques +
                    static_cast<std::size_t>(worker.chosen[static_cast<std::size_t>(e)])] += 1.0;
}

bool ChainObjective::maximise(Worker& worker, const ChainScores& scores, std::size_t first, bool with_marginals) const {
    const std::size_t n = scores.n_examples();
    double* maxima = worker.maxima.require(n);
    ChainOracle oracle(*model_.topology, scores, 1);
    const bool hard = data_.temperature == 0.0;
    if (!with_marginals) {
        if (hard)
            oracle.maximum(maxima);
        else
            oracle.log_partition(maxima);
    } else if (hard) {
        worker.labels.resize(scores.n_nodes());
        oracle.argmax(worker.labels.data());
    } else {
        const std::size_t clique_rows = model_.pair ? worker.chunk.n_edges() : n;
        double* nodes = worker.nodes.require(checked_product(scores.n_nodes(), model_.topology->n_labels()));
        double* cliques = worker.cliques.require(checked_product(clique_rows, model_.topology->n_cliques()));
        oracle.marginals(nodes, model_.pair ? CliqueOutput::each : CliqueOutput::sum, cliques, maxima);
    }
    for (std::size_t i = 0; i < n; ++i) {
        if (oracle.statuses()[i] == Status::impossible)
            throw std::invalid_argument("Example " + std::to_string(first + i) +
                                        " has no labelling that its labels and the constraints allow.");
        if (oracle.statuses()[i] == Status::bad_number) return false;
    }
    if (hard && with_marginals) {
        indicate(worker, scores);
        oracle.score(worker.labels.data(), maxima);
    }
    if (!hard)
        for (std::size_t i = 0; i < n; ++i) maxima[i] *= data_.temperature;
    return true;
}

double ChainObjective::add(Worker& worker, const double* w, double scale, std::size_t first, std::size_t last,
                           std::span<const GradientTarget> targets) const {
    const std::size_t n = last - first;
    const ChainScores& scores = worker.chunk.compute(w, scale, first, last, true);
    // c_i times the smoothed maximum over all labellings, or, with the sign -1, over those that partly labelled
    // examples allow.
    const auto maximum = [&](double sign) {
        if (!maximise(worker, scores, first, !targets.empty())) return std::nan("");
        double total = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            const double weighted = data_.weights[first + i] * worker.maxima.data()[i];
            total += weighted;
            worker.magnitude += std::abs(weighted);
        }
        if (!targets.empty() && !data_.allowed) subtract_truth(worker, first, last);
        for (const GradientTarget& target : targets)
            add_gradient(worker, first, last, {target.vector, sign * target.factor});
        return total;
    };
    double loss = maximum(1.0);
    if (data_.allowed) {
        // The scores are needed once more, and the gradient may have moved w: they are still in the chunk.
        worker.chunk.forbid(first, last);
        return loss - maximum(-1.0);
    }
    for (std::size_t i = 0; i < n; ++i) {
        const double weighted = data_.weights[first + i] * scale * true_score(scores, first + i, i);
        loss -= weighted;
        worker.magnitude += std::abs(weighted);
    }
    return loss;
}

void ChainObjective::losses(const double* w, double* out, const SeeScores& see) {
    std::vector<Worker> workers = one_for_each<Worker>(n_threads_, model_, data_, features_);
    parallel_for(chunks_.size() - 1, n_threads_, [&](std::size_t at, std::size_t c) {
        Worker& worker = workers[at];
        const std::size_t first = chunks_[c], n = chunks_[c + 1] - first;
        const ChainScores& scores = worker.chunk.compute(w, 1.0, first, chunks_[c + 1], true);
        const auto maximum = [&](double sign) {
            const bool finite = maximise(worker, scores, first, false);
            for (std::size_t i = 0; i < n; ++i)
                out[first + i] += finite ? sign * worker.maxima.data()[i] : std::nan("");
        };
        std::fill_n(out + first, n, 0.0);
        maximum(1.0);
        for (std::size_t i = 0; see && i < n; ++i)
            see(at, first + i,
                worker.chunk.node() + static_cast<std::size_t>(scores.offsets[i]) * model_.topology->n_labels(),
                out[first + i]);
        if (data_.allowed) {
            worker.chunk.forbid(first, chunks_[c + 1]);
            maximum(-1.0);
        } else {
            for (std::size_t i = 0; i < n; ++i) out[first + i] -= true_score(scores, first + i, i);
        }
    });
}

void ChainObjective::add_difference(Worker& worker, std::size_t example, const std::int32_t* labels,
                                    std::span<const GradientTarget> targets) const {
    const std::size_t n_labels = model_.topology->n_labels(), n_cliques = model_.topology->n_cliques();
    const std::size_t length = data_.length(example), n_edges = length - 1;
    const std::size_t clique_rows = model_.pair ? n_edges : 1;
    double* nodes = worker.nodes.require(checked_product(length, n_labels));
    double* cliques = worker.cliques.require(checked_product(std::max<std::size_t>(clique_rows, 1), n_cliques));
    std::fill_n(nodes, length * n_labels, 0.0);
    std::fill_n(cliques, clique_rows * n_cliques, 0.0);
    const std::int64_t offsets[2] = {0, static_cast<std::int64_t>(length)};
    std::vector<std::int64_t> chosen(n_edges);
    clique_indices(*model_.topology, offsets, labels, chosen.data());
    for (std::size_t t = 0; t < length; ++t) nodes[t * n_labels + static_cast<std::size_t>(labels[t])] = 1.0;
    for (std::size_t e = 0; e < n_edges; ++e)
        cliques[(model_.pair ? e * n_cliques : 0) + static_cast<std::size_t>(chosen[e])] += 1.0;
    subtract_truth(worker, example, example + 1);
    for (const GradientTarget& target : targets) add_gradient(worker, example, example + 1, target);
}

double ChainObjective::loss(const double* w) {
    std::vector<Worker> workers = one_for_each<Worker>(n_threads_, model_, data_, features_);
    std::vector<double> parts(chunks_.size() - 1);
    parallel_for(parts.size(), n_threads_, [&](std::size_t worker, std::size_t c) {
        parts[c] = add(workers[worker], w, 1.0, chunks_[c], chunks_[c + 1], {});
    });
    double total = 0.0;
    for (const double part : parts) total += part;
    return total;
}

double ChainObjective::loss_and_gradient(const double* w, double* gradient, double* magnitude) {
    const std::size_t size = model_.size(), n_shards = shards_.size() - 1;
    std::vector<Worker> workers = one_for_each<Worker>(n_threads_, model_, data_, features_);
    // The first shard writes where the sum will be.
    std::vector<Buffer> others(n_shards - 1);
    std::vector<double> parts(n_shards, 0.0), sizes(n_shards, 0.0);
    const auto target = [&](std::size_t s) { return s == 0 ? gradient : others[s - 1].data(); };
    parallel_for(n_shards, n_threads_, [&](std::size_t worker, std::size_t s) {
        if (s > 0) others[s - 1].require(size);
        const GradientTarget own{target(s), 1.0};
        std::fill_n(own.vector, size, 0.0);
        workers[worker].magnitude = 0.0;
        for (std::size_t c = shards_[s]; c < shards_[s + 1]; ++c)
            parts[s] += add(workers[worker], w, 1.0, chunks_[c], chunks_[c + 1], {&own, 1});
        sizes[s] = workers[worker].magnitude;
    });
    constexpr std::size_t kPiece = 1 << 14;
    parallel_for((size + kPiece - 1) / kPiece, n_threads_, [&](std::size_t, std::size_t piece) {
        const std::size_t begin = piece * kPiece, end = std::min(size, begin + kPiece);
        for (std::size_t s = 1; s < n_shards; ++s)
            for (std::size_t j = begin; j < end; ++j) gradient[j] += others[s - 1].data()[j];
    });
    double total = 0.0;
    for (const double part : parts) total += part;
    if (magnitude) *magnitude = std::accumulate(sizes.begin(), sizes.end(), 0.0);
    return total;
}

}  // namespace dualfield
