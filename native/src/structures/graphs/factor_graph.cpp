#include "dualfield/structures/graphs/factor_graph.hpp"

#include <algorithm>
#include <utility>

#include "../partition.hpp"
#include "dualfield/core/memory.hpp"
#include "dualfield/core/parallel.hpp"
#include "dualfield/core/random.hpp"
#include "junction_pass.hpp"

namespace dualfield {

FactorGraph::FactorGraph(std::vector<std::int32_t> n_labels, const Scopes& scopes, const EliminationLimits& limits)
    : n_labels_(std::move(n_labels)), plan_(plan_elimination(n_labels_, scopes, limits)) {}

namespace {

// A group reads and writes a few rows of each of many arrays: no processor foresees the next ones by itself.
void prefetch(const double* from, std::size_t n) {
    constexpr std::size_t kLine = 64 / sizeof(double);
    for (std::size_t j = 0; j < n; j += kLine) prefetch_line(from + j);
}

}  // namespace

// Some examples that follow each other.
class FactorGraph::Pass {
  public:
    Pass(const FactorGraph& graph, const FactorBatch& batch, const SharedFactors& ready, FactorReport& report)
        : graph_(graph), batch_(batch), ready_(ready), report_(report) {}

    void begin(std::size_t first, std::size_t n_examples) {
        first_ = first;
        junction.begin(graph_.plan_, n_examples, batch_.inverse_temperature);
        const std::size_t n_nodes = graph_.n_nodes();
        junction.know(batch_.known ? batch_.known + first * n_nodes : nullptr, n_nodes);
        for (std::size_t f = 0; f < batch_.tables.size(); ++f) {
            FactorScores& factor = junction.factor(f);
            const double* table = batch_.tables[f];
            if (batch_.is_shared[f]) {
                for (const double*& lane : factor.shared) lane = table;
                factor.ready = ready_[f];
                continue;
            }
            const std::size_t cells = graph_.plan_.factor_cells[f];
            prefetch(table + (first + n_examples) * cells, n_next(first + n_examples) * cells);
            junction.for_lanes(
                [&](std::size_t lane, std::size_t i) { factor.own[lane] = table + (first + i) * cells; });
        }
    }
    std::size_t first() const { return first_; }
    // The scores of a factor in the first example.
    const double* table(std::size_t f) const {
        return batch_.tables[f] + (batch_.is_shared[f] ? 0 : first_ * graph_.plan_.factor_cells[f]);
    }
    // Calls body(i, example) for the examples that have an answer.
    template <class Body>
    void answer(bool sums, Body body) {
        for (std::size_t i = 0; i < junction.n_examples(); ++i) {
            if (sums && !junction.is_meant(i)) continue;
            if (junction.is_huge(i)) is_huge = true;
            Status& status = report_.statuses[first_ + i];
            status = junction.status(i);
            if (status == Status::ok) body(i, first_ + i);
        }
    }
    // Where the answers of some factors or nodes go; out [n] may be null.
    template <class Cells>
    FactorSums* places(std::vector<FactorSums>& sums, double* const* out, std::size_t n, Cells cells) {
        if (!out) return nullptr;
        sums.assign(n, {});
        for (std::size_t i = 0; i < junction.n_examples(); ++i)
            if (report_.statuses[first_ + i] == Status::ok && junction.is_meant(i))
                for (std::size_t f = 0; f < n; ++f) sums[f].own[i] = out[f] + (first_ + i) * cells(f);
        const std::size_t next = first_ + junction.n_examples();
        for (std::size_t f = 0; f < n; ++f) prefetch(out[f] + next * cells(f), n_next(next) * cells(f));
        return sums.data();
    }

    JunctionPass junction;
    std::vector<FactorSums> factors, nodes;
    bool is_huge = false;

  private:
    // Examples of the group that begins there.
    std::size_t n_next(std::size_t first) const { return std::min(junction.n_examples(), batch_.n_examples - first); }

    const FactorGraph& graph_;
    const FactorBatch& batch_;
    const SharedFactors& ready_;
    FactorReport& report_;
    std::size_t first_ = 0;
};

// Calls body(pass) for groups of examples, of as many as there are lanes or of one, on several threads.
template <class Body>
FactorReport FactorGraph::for_groups(const FactorBatch& batch, bool in_lanes, Body body) const {
    FactorReport report;
    report.statuses.assign(batch.n_examples, Status::ok);
    std::size_t room = 0;
    for (std::size_t f = 0; f < batch.tables.size(); ++f)
        if (batch.is_shared[f]) room += plan_.factor_cells[f];
    SharedFactors ready(batch.tables.size(), room);
    for (std::size_t f = 0; f < batch.tables.size(); ++f)
        if (batch.is_shared[f]) ready.add(f, batch.tables[f], plan_.factor_cells[f], batch.inverse_temperature);
    const std::size_t size = in_lanes && JunctionPass::has_lanes(plan_) ? kSideBySide : 1;
    constexpr std::size_t kGroupsOfTask = 16;  // small groups take less than a microsecond
    const std::size_t n_of_task = size * kGroupsOfTask, n_tasks = (batch.n_examples + n_of_task - 1) / n_of_task;
    const std::size_t n_threads = std::max<std::size_t>(1, std::min(batch.n_threads, n_tasks));
    std::vector<Pass> passes;
    passes.reserve(n_threads);
    for (std::size_t i = 0; i < n_threads; ++i) passes.emplace_back(*this, batch, ready, report);
    parallel_for(n_tasks, n_threads, [&](std::size_t worker, std::size_t task) {
        const std::size_t last = std::min(batch.n_examples, (task + 1) * n_of_task);
        for (std::size_t at = task * n_of_task; at < last; at += size) {
            passes[worker].begin(at, std::min(size, last - at));
            body(passes[worker]);
        }
    });
    for (const Pass& pass : passes) report.is_huge |= pass.is_huge;
    return report;
}

FactorReport FactorGraph::log_partition(const FactorBatch& batch, double* out) const {
    return for_groups(batch, true, [&](Pass& pass) {
        pass.junction.up_sum([&] {
            pass.answer(true, [&](std::size_t i, std::size_t example) { out[example] = pass.junction.total(i); });
        });
    });
}

FactorReport FactorGraph::maximum(const FactorBatch& batch, double* out) const {
    return for_groups(batch, true, [&](Pass& pass) {
        pass.junction.up_max();
        pass.answer(false, [&](std::size_t i, std::size_t example) { out[example] = pass.junction.total(i); });
    });
}

FactorReport FactorGraph::argmax(const FactorBatch& batch, std::int32_t* labels) const {
    return for_groups(batch, true, [&](Pass& pass) {
        pass.junction.up_max();
        pass.answer(false,
                    [&](std::size_t i, std::size_t example) { pass.junction.decode(i, labels + example * n_nodes()); });
    });
}

FactorReport FactorGraph::marginals(const FactorBatch& batch, double* const* factors, double* const* nodes) const {
    return for_groups(batch, true, [&](Pass& pass) {
        pass.junction.up_sum([&] {
            pass.answer(true, [](std::size_t, std::size_t) {});
            const auto cells = [&](std::size_t f) { return plan_.factor_cells[f]; };
            const auto labels = [&](std::size_t node) { return n_labels(node); };
            pass.junction.down(pass.places(pass.factors, factors, batch.tables.size(), cells),
                               pass.places(pass.nodes, nodes, n_nodes(), labels));
        });
    });
}

FactorReport FactorGraph::entropy(const FactorBatch& batch, double* out) const {
    return for_groups(batch, false, [&](Pass& pass) {
        pass.junction.up_sum([&] {
            pass.answer(true,
                        [&](std::size_t, std::size_t example) { pass.junction.down(nullptr, nullptr, out + example); });
        });
    });
}

FactorReport FactorGraph::sample(const FactorBatch& batch, std::size_t n_samples, std::uint64_t seed,
                                 std::int32_t* labels) const {
    return for_groups(batch, false, [&](Pass& pass) {
        pass.junction.up_sum([&] {
            pass.answer(true, [&](std::size_t i, std::size_t example) {
                RandomStream random(seed, example);
                for (std::size_t draw = 0; draw < n_samples; ++draw)
                    pass.junction.draw(i, random, labels + (draw * batch.n_examples + example) * n_nodes());
            });
        });
    });
}

FactorReport FactorGraph::max_marginals(const FactorBatch& batch, double* const* nodes) const {
    return for_groups(batch, false, [&](Pass& pass) {
        pass.junction.up_max();
        pass.answer(false, [&](std::size_t, std::size_t example) {
            pass.nodes.assign(n_nodes(), {});
            for (std::size_t t = 0; t < n_nodes(); ++t) pass.nodes[t].own[0] = nodes[t] + example * n_labels(t);
            pass.junction.best_down(pass.nodes.data());
        });
    });
}

FactorReport FactorGraph::k_best(const FactorBatch& batch, std::size_t k, std::int32_t* labels, double* scores) const {
    std::vector<std::size_t> begins{0};
    for (std::size_t t = 0; t < n_nodes(); ++t) begins.push_back(begins.back() + n_labels(t));
    const std::size_t n_before = batch.tables.size() - n_nodes();
    return for_groups(batch, false, [&](Pass& pass) {
        std::vector<double> node(begins.back());
        for (std::size_t t = 0; t < n_nodes(); ++t)
            std::copy_n(pass.table(n_before + t), n_labels(t), node.data() + begins[t]);
        Partition partition(begins, node.data(), [&](const double* masked, std::int32_t* best) -> Block::Answer {
            for (std::size_t t = 0; t < n_nodes(); ++t)
                pass.junction.factor(n_before + t) = {.own = {masked + begins[t]}};
            pass.junction.up_max();
            if (pass.junction.status(0) == Status::ok) pass.junction.decode(0, best);
            return {pass.junction.total(0), pass.junction.status(0)};
        });
        const Status status = partition.begin();
        pass.answer(false, [](std::size_t, std::size_t) {});
        for (std::size_t r = 0; status == Status::ok && r < k; ++r)
            scores[pass.first() * k + r] = partition.next(labels + (r * batch.n_examples + pass.first()) * n_nodes());
    });
}

}  // namespace dualfield
