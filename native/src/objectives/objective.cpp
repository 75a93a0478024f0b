#include "dualfield/objectives/objective.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "dualfield/core/layout.hpp"
#include "dualfield/core/parallel.hpp"

namespace dualfield {
namespace {

// Each shard has a gradient of its own, and they are added up in order: so many that the sums are a small part of the
// work, whatever the number of threads.
constexpr std::size_t kMostShards = 8;
constexpr std::size_t kChunkRows = 2048, kChunkExamples = 64;
constexpr std::size_t kChunkParts = std::size_t{1} << 18;  // shared or wide parts that a chunk may hold

// A pointer for each table, moved by the rows of the examples before one of them.
template <class T>
std::array<T*, kMostTables> moved_to(std::size_t example, std::size_t first, const PartLayout& parts,
                                     std::array<T*, kMostTables> own) {
    for (std::size_t g = 0; g < parts.tables.size(); ++g)
        if (own[g]) own[g] += (parts.tables[g].first(example) - parts.tables[g].first(first)) * parts.tables[g].width;
    return own;
}

std::size_t n_rows(const OwnTable& table, Examples examples) {
    return table.first(examples.last) - table.first(examples.first);
}

}  // namespace

const ScoreView& ChunkScores::compute(const double* w, double scale, Examples examples, bool with_cost) {
    const PartLayout& parts = problem_.structure->parts();
    std::array<double*, kMostTables> own{};
    for (std::size_t g = 0; g < parts.tables.size(); ++g)
        own[g] = own_[g].require(
            std::max<std::size_t>(checked_product(n_rows(parts.tables[g], examples), parts.tables[g].width), 1));
    problem_.scores->score(w, examples, own, scratch_.require(problem_.scores->scratch_size()));
    first_ = examples.first;
    for (std::size_t g = 0; g < parts.tables.size(); ++g) view_.own[g] = own[g];
    view_.shared = problem_.scores->shared(w);
    if (problem_.allowed) {
        // They are needed twice, and the gradient may move w in between.
        double* kept = shared_.require(std::max<std::size_t>(parts.n_shared, 1));
        view_.shared = std::copy_n(view_.shared, parts.n_shared, kept) - parts.n_shared;
    }
    view_.inverse_temperature = problem_.temperature > 0.0 ? scale / problem_.temperature : scale;
    if (with_cost && problem_.cost)
        for (std::size_t i = examples.first; i < examples.last; ++i)
            problem_.structure->add_cost(i, problem_.truth(i), problem_.cost, scale,
                                         moved_to(i, first_, parts, own)[0]);
    return view_;
}

void ChunkScores::forbid(Examples examples) {
    const OwnTable& nodes = problem_.structure->parts().tables[0];
    const std::uint8_t* allowed = problem_.allowed + nodes.first(examples.first) * nodes.width;
    const std::size_t count = n_rows(nodes, examples) * nodes.width;
    for (std::size_t j = 0; j < count; ++j)
        if (!allowed[j]) own_[0].data()[j] = -kInfinity;
}

ScoreView ChunkScores::of(std::size_t example) const {
    ScoreView view = view_;
    view.own = moved_to(example, first_, problem_.structure->parts(), view.own);
    return view;
}

std::vector<std::size_t> cut_into_chunks(const Problem& problem) {
    const PartLayout& parts = problem.structure->parts();
    const std::size_t wide = std::max<std::size_t>(parts.n_shared, 1);
    const std::size_t most_examples = std::clamp<std::size_t>(kChunkParts / wide, 4, kChunkExamples);
    std::size_t most_rows = kChunkRows;
    for (std::size_t g = 1; g < parts.tables.size(); ++g)
        most_rows = std::min(
            most_rows,
            std::clamp<std::size_t>(kChunkParts / std::max<std::size_t>(parts.tables[g].width, 1), 16, kChunkRows));
    std::vector<std::size_t> chunks{0};
    std::size_t rows = 0;
    for (std::size_t i = 0; i < problem.n_examples(); ++i) {
        const std::size_t own = parts.tables[0].n_rows(i);
        if (i > chunks.back() && (i - chunks.back() >= most_examples || rows + own > most_rows)) {
            chunks.push_back(i);
            rows = 0;
        }
        rows += own;
    }
    if (problem.n_examples() > 0) chunks.push_back(problem.n_examples());
    return chunks;
}

Objective::Objective(const Problem& problem, std::size_t n_threads)
    : problem_(problem),
      n_threads_(std::max<std::size_t>(n_threads, 1)),
      chunks_(cut_into_chunks(problem)),
      truth_(problem) {
    problem.scores->prepare();
    const std::size_t n_shards =
        std::clamp<std::size_t>(problem.scores->n_entries() / std::max<std::size_t>(problem.size(), 1), 1, kMostShards);
    const std::size_t n_chunks = chunks_.size() - 1;
    for (std::size_t s = 0; s <= n_shards; ++s) shards_.push_back(n_chunks * s / n_shards);
}

std::vector<Objective::Worker> Objective::workers() const {
    std::vector<Worker> all;
    all.reserve(n_threads_);
    for (std::size_t i = 0; i < n_threads_; ++i) all.emplace_back(problem_);
    return all;
}

PartSums Objective::require_sums(Worker& worker, Examples examples) const {
    const PartLayout& parts = problem_.structure->parts();
    PartSums sums;
    for (std::size_t g = 0; g < parts.tables.size(); ++g)
        sums.own[g] = worker.own[g].require(
            std::max<std::size_t>(checked_product(n_rows(parts.tables[g], examples), parts.tables[g].width), 1));
    sums.shared = worker.shared.require(std::max<std::size_t>(checked_product(examples.size(), parts.n_shared), 1));
    return sums;
}

PartSums Objective::sums_of(Worker& worker, Examples examples, std::size_t example) const {
    const PartLayout& parts = problem_.structure->parts();
    PartSums sums;
    for (std::size_t g = 0; g < parts.tables.size(); ++g) sums.own[g] = worker.own[g].data();
    sums.own = moved_to(example, examples.first, parts, sums.own);
    sums.shared = worker.shared.data() + (example - examples.first) * parts.n_shared;
    return sums;
}

// target += factor * c_i A_i' marginals, for marginals in the worker.
void Objective::add_gradient(Worker& worker, Examples examples, const GradientTarget& target) const {
    double* scratch = worker.scratch.require(problem_.scores->scratch_size());
    for (std::size_t i = examples.first; i < examples.last; ++i)
        problem_.scores->add(i, sums_of(worker, examples, i), target.factor * problem_.weights[i], target.vector,
                             scratch);
}

// The indicator of worker.labels, laid out as marginals are.
void Objective::indicate(Worker& worker, Examples examples) const {
    problem_.structure->indicate(examples, worker.labels.data(), require_sums(worker, examples));
}

bool Objective::maximise(Worker& worker, Examples examples, bool with_marginals) const {
    const Structure& structure = *problem_.structure;
    const ScoreView& scores = worker.chunk.view();
    const std::size_t n = examples.size();
    double* maxima = worker.maxima.require(n);
    worker.statuses.resize(n);
    const bool hard = problem_.temperature == 0.0;
    if (!with_marginals) {
        if (hard)
            structure.maximum(examples, scores, 1, maxima, worker.statuses.data());
        else
            structure.log_partition(examples, scores, 1, maxima, worker.statuses.data());
    } else {
        PartSums sums = require_sums(worker, examples);
        sums.slack = worker.slacks.require(n);
        std::fill_n(sums.slack, n, 0.0);
        if (hard)
            structure.best_point(examples, scores, 1, sums, maxima, worker.statuses.data());
        else
            structure.marginals(examples, scores, 1, sums, maxima, worker.statuses.data());
        const double scale = hard ? 1.0 : problem_.temperature;
        for (std::size_t i = 0; i < n; ++i)
            worker.doubt.slack += problem_.weights[examples.first + i] * scale * sums.slack[i];
    }
    for (std::size_t i = 0; i < n; ++i) {
        if (worker.statuses[i] == Status::impossible)
            throw std::invalid_argument("Example " + std::to_string(examples.first + i) +
                                        " has no labelling that its labels and the constraints allow.");
        if (worker.statuses[i] == Status::bad_number) return false;
    }
    if (!hard)
        for (std::size_t i = 0; i < n; ++i) maxima[i] *= problem_.temperature;
    return true;
}

double Objective::add(Worker& worker, const double* w, double scale, Examples examples,
                      std::span<const GradientTarget> targets) const {
    worker.chunk.compute(w, scale, examples, true);
    // c_i times the smoothed maximum over the labellings that the chunk allows.
    const auto maximum = [&] {
        if (!maximise(worker, examples, !targets.empty())) return std::nan("");
        double total = 0.0;
        for (std::size_t i = 0; i < examples.size(); ++i) {
            const double weighted = problem_.weights[examples.first + i] * worker.maxima.data()[i];
            total += weighted;
            worker.doubt.magnitude += std::abs(weighted);
        }
        return total;
    };
    const auto add_gradients = [&](double sign) {
        if (!targets.empty() && !problem_.allowed)
            for (std::size_t i = examples.first; i < examples.last; ++i) {
                const PartSums sums = sums_of(worker, examples, i);
                truth_.add(i, -1.0, sums.own, sums.shared);
            }
        for (const GradientTarget& target : targets)
            add_gradient(worker, examples, {target.vector, sign * target.factor});
    };
    double loss = maximum();
    if (std::isnan(loss)) return loss;
    if (problem_.allowed) {
        add_gradients(1.0);
        worker.chunk.forbid(examples);
        loss -= maximum();
        if (!std::isnan(loss)) add_gradients(-1.0);
        return loss;
    }
    for (std::size_t i = examples.first; i < examples.last; ++i) {
        const double score = problem_.structure->score_parts(i, worker.chunk.of(i), truth_.parts(i));
        const double weighted = problem_.weights[i] * scale * score;
        loss -= weighted;
        worker.doubt.magnitude += std::abs(weighted);
    }
    add_gradients(1.0);
    return loss;
}

void Objective::losses(const double* w, double* out, const SeeScores& see) {
    std::vector<Worker> all = workers();
    parallel_for(chunks_.size() - 1, n_threads_, [&](std::size_t at, std::size_t c) {
        Worker& worker = all[at];
        const Examples examples{chunks_[c], chunks_[c + 1]};
        worker.chunk.compute(w, 1.0, examples, true);
        const auto maximum = [&](double sign) {
            const bool finite = maximise(worker, examples, false);
            for (std::size_t i = 0; i < examples.size(); ++i)
                out[examples.first + i] += finite ? sign * worker.maxima.data()[i] : std::nan("");
        };
        std::fill_n(out + examples.first, examples.size(), 0.0);
        maximum(1.0);
        for (std::size_t i = examples.first; see && i < examples.last; ++i) see(at, i, worker.chunk.of(i), out[i]);
        if (problem_.allowed) {
            worker.chunk.forbid(examples);
            maximum(-1.0);
        } else {
            for (std::size_t i = examples.first; i < examples.last; ++i)
                out[i] -= problem_.structure->score_parts(i, worker.chunk.of(i), truth_.parts(i));
        }
    });
}

void Objective::add_difference(Worker& worker, std::size_t example, const std::int32_t* labels,
                               std::span<const GradientTarget> targets) const {
    const Examples one{example, example + 1};
    worker.labels.assign(labels, labels + problem_.length(example));
    indicate(worker, one);
    const PartSums sums = sums_of(worker, one, example);
    truth_.add(example, -1.0, sums.own, sums.shared);
    for (const GradientTarget& target : targets) add_gradient(worker, one, target);
}

double Objective::loss(const double* w) {
    std::vector<Worker> all = workers();
    std::vector<double> parts(chunks_.size() - 1);
    parallel_for(parts.size(), n_threads_, [&](std::size_t worker, std::size_t c) {
        parts[c] = add(all[worker], w, 1.0, {chunks_[c], chunks_[c + 1]}, {});
    });
    double total = 0.0;
    for (const double part : parts) total += part;
    return total;
}

void Objective::sum_shards(double* out, const std::function<void(std::size_t, std::size_t, double*)>& body) const {
    const std::size_t size = problem_.size(), n_shards = shards_.size() - 1;
    // The first shard writes where the sum will be.
    std::vector<Buffer> others(n_shards - 1);
    parallel_for(n_shards, n_threads_, [&](std::size_t worker, std::size_t s) {
        double* own = s == 0 ? out : others[s - 1].require(size);
        std::fill_n(own, size, 0.0);
        body(worker, s, own);
    });
    constexpr std::size_t kPiece = 1 << 14;
    parallel_for((size + kPiece - 1) / kPiece, n_threads_, [&](std::size_t, std::size_t piece) {
        const std::size_t begin = piece * kPiece, end = std::min(size, begin + kPiece);
        for (std::size_t s = 1; s < n_shards; ++s)
            for (std::size_t j = begin; j < end; ++j) out[j] += others[s - 1].data()[j];
    });
}

double Objective::loss_and_gradient(const double* w, double* gradient, Doubt* doubt) {
    const std::size_t n_shards = shards_.size() - 1;
    std::vector<Worker> all = workers();
    std::vector<double> parts(n_shards, 0.0);
    std::vector<Doubt> doubts(n_shards);
    sum_shards(gradient, [&](std::size_t worker, std::size_t s, double* vector) {
        const GradientTarget own{vector, 1.0};
        all[worker].doubt = {};
        for (std::size_t c = shards_[s]; c < shards_[s + 1]; ++c)
            parts[s] += add(all[worker], w, 1.0, {chunks_[c], chunks_[c + 1]}, {&own, 1});
        doubts[s] = all[worker].doubt;
    });
    double total = 0.0;
    for (const double part : parts) total += part;
    for (const Doubt& one : doubts)
        if (doubt) *doubt = {doubt->magnitude + one.magnitude, doubt->slack + one.slack};
    return total;
}

void tag(const Problem& problem, const double* w, std::size_t n_threads, bool with_cost, std::int32_t* labels) {
    const std::vector<std::size_t> chunks = cut_into_chunks(problem);
    struct Worker {
        ChunkScores chunk;
        std::vector<Status> statuses;
    };
    std::vector<Worker> workers;
    for (std::size_t i = 0; i < std::max<std::size_t>(n_threads, 1); ++i) workers.push_back({ChunkScores(problem), {}});
    parallel_for(chunks.size() - 1, n_threads, [&](std::size_t at, std::size_t c) {
        Worker& worker = workers[at];
        const Examples examples{chunks[c], chunks[c + 1]};
        worker.statuses.resize(examples.size());
        problem.structure->argmax(examples, worker.chunk.compute(w, 1.0, examples, with_cost), 1,
                                  labels + problem.first(examples.first), worker.statuses.data());
        for (std::size_t i = examples.first; i < examples.last; ++i) {
            const Status status = worker.statuses[i - examples.first];
            if (status == Status::ok) continue;
            const std::string reason = problem.structure->no_labelling(i);
            throw std::invalid_argument(
                status == Status::impossible
                    ? "Example " + std::to_string(i) +
                          " has no allowed labelling: " + (reason.empty() ? "the constraints leave none." : reason)
                    : "The scores of example " + std::to_string(i) + " are not finite: its features are too large.");
        }
    });
}

void score_own(const Problem& problem, const double* w, std::size_t n_threads,
               const std::array<double*, kMostTables>& own) {
    const std::vector<std::size_t> chunks = cut_into_chunks(problem);
    std::vector<Buffer> scratch(std::max<std::size_t>(n_threads, 1));
    parallel_for(chunks.size() - 1, n_threads, [&](std::size_t worker, std::size_t c) {
        problem.scores->score(w, {chunks[c], chunks[c + 1]}, moved_to(chunks[c], 0, problem.structure->parts(), own),
                              scratch[worker].require(problem.scores->scratch_size()));
    });
}

}  // namespace dualfield
