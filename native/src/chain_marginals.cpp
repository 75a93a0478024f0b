// Queries that sum over labellings: log-partition, marginals, entropy.
#include <cmath>

#include "dualfield/chain.hpp"
#include "dualfield/chain_block.hpp"
#include "dualfield/chain_driver.hpp"
#include "dualfield/routines.hpp"

namespace dualfield {
namespace {

// Marginals of the cliques that end at node t into workspace.edge_marginals [n_cliques]; returns the table that they
// were computed with.
const TransitionTable& edge_marginals(const ChainContext& context, const ChainLane& lane, std::size_t t,
                                      ChainWorkspace& workspace) {
    const ChainTopology& topology = context.topology;
    const Domain domain = lane.out_of_range ? Domain::logarithm : Domain::exponential;
    const TransitionTable& table =
        context.table_at(workspace, lane.example, t, domain, ChainContext::Direction::forward);
    const double* alpha = lane.alpha + (t - 1) * topology.width();
    const double* pulled = lane.emission + t * topology.width();
    const double* entries = table.forward.data();
    const auto cliques = topology.cliques();
    const std::span<double> out(workspace.edge_marginals.require(cliques.size()), cliques.size());
    if (domain == Domain::exponential) {
        for (std::size_t c = 0; c < cliques.size(); ++c)
            out[c] = alpha[cliques[c].from] * entries[cliques[c].forward_entry] * pulled[cliques[c].to];
        return table;
    }
    double highest = -kInfinity;
    for (std::size_t c = 0; c < cliques.size(); ++c) {
        out[c] = alpha[cliques[c].from] + entries[cliques[c].forward_entry] + pulled[cliques[c].to];
        highest = std::max(highest, out[c]);
    }
    double total = 0.0;
    for (double& value : out) total += value = std::exp(value - highest);
    for (double& value : out) value /= total;
    return table;
}

// sum_c marginal * (score - shift) over the cliques that can occur.
double edge_energy(const ChainTopology& topology, const double* clique_scores, double inverse_temperature, double shift,
                   const double* marginals) {
    double energy = 0.0;
    const auto cliques = topology.cliques();
    for (std::size_t c = 0; c < cliques.size(); ++c)
        if (marginals[c] > 0.0)
            energy += marginals[c] * ((clique_scores ? clique_scores[c] * inverse_temperature : 0.0) - shift);
    return energy;
}

// Clique marginals of one example summed over its edges, [n_cliques].
void sum_cliques(const ChainContext& context, const ChainLane& lane, ChainWorkspace& workspace, double* sums) {
    const ChainTopology& topology = context.topology;
    if (context.shared && !lane.out_of_range) {
        double* outer = workspace.outer.require(topology.forward_size());
        routines().outer_sums(topology, lane, outer);
        const double* entries = context.shared->forward.data();
        if (topology.is_plain()) {  // cliques are the rows of the table without their padding
            const std::size_t n = topology.n_labels(), width = topology.width();
            for (std::size_t row = 0; row < n; ++row)
                for (std::size_t k = 0; k < n; ++k)
                    sums[row * n + k] = outer[row * width + k] * entries[row * width + k];
            return;
        }
        for (const auto& clique : topology.cliques())
            *sums++ = outer[clique.forward_entry] * entries[clique.forward_entry];
        return;
    }
    std::fill_n(sums, topology.n_cliques(), 0.0);
    for (std::size_t t = 1; t < lane.length; ++t) {
        edge_marginals(context, lane, t, workspace);
        for (std::size_t c = 0; c < topology.n_cliques(); ++c) sums[c] += workspace.edge_marginals.data()[c];
    }
}

// sum_t <score_t - shift_t, marginals_t> over the cliques of one example.
double clique_energy(const ChainContext& context, const ChainLane& lane, ChainWorkspace& workspace) {
    const ChainTopology& topology = context.topology;
    const ChainScores& scores = context.scores;
    if (context.shared && !lane.out_of_range) {
        double* sums = workspace.clique_sums.require(topology.n_cliques());
        sum_cliques(context, lane, workspace, sums);
        return edge_energy(topology, scores.transition, scores.inverse_temperature, context.shared->shift, sums);
    }
    double energy = 0.0;
    for (std::size_t t = 1; t < lane.length; ++t) {
        const TransitionTable& table = edge_marginals(context, lane, t, workspace);
        energy += edge_energy(topology, scores.transition_at(lane.example, t, topology.n_cliques()),
                              scores.inverse_temperature, table.shift, workspace.edge_marginals.data());
    }
    return energy;
}

// H = sum_t (log of what row t's normalisation took out - <node scores, node marginals>) - <clique scores, clique
// marginals>: logZ - <score, mu> with the subtraction done node by node, so that large scores cancel where they stand.
double entropy_of(const ChainContext& context, const ChainLane& lane, double energy_of_cliques) {
    const std::size_t n_labels = context.topology.n_labels();
    double entropy = -energy_of_cliques;
    for (std::size_t t = 0; t < lane.length; ++t) {
        const double* marginals = lane.nodes + t * n_labels;
        double highest = 0.0;
        if (!lane.out_of_range) {
            highest = -kInfinity;
            for (std::size_t k = 0; k < n_labels; ++k)
                highest = std::max(highest, node_score(context.scores, n_labels, lane.example, t, k));
        }
        double local = lane.out_of_range ? lane.taken[t] : std::log(lane.taken[t]);
        for (std::size_t k = 0; k < n_labels; ++k)
            if (marginals[k] > 0.0)
                local -= marginals[k] * (node_score(context.scores, n_labels, lane.example, t, k) - highest);
        entropy += local;
    }
    if (lane.out_of_range) {
        const double* last = lane.alpha + (lane.length - 1) * context.topology.width();
        double total = 0.0;
        for (std::size_t s = 0; s < context.topology.width(); ++s) total += std::exp(last[s]);
        entropy += std::log(total);
    }
    return std::max(entropy, 0.0);
}

}  // namespace

void ChainOracle::log_partition(double* out) {
    std::fill_n(out, scores_.n_examples(), 0.0);  // an empty example has one labelling, of score 0
    SumPasses passes(topology_, scores_, false, false);
    for_groups(scores_, n_threads_, [&](ChainWorkspace& workspace, std::span<ChainLane> lanes) {
        passes.run(workspace, lanes, true, [](const ChainLane&) {});
        for (const ChainLane& lane : lanes) {
            statuses_[lane.example] = status_of(lane);
            out[lane.example] = lane.log_partition;
        }
    });
}

void ChainOracle::marginals(double* nodes, CliqueOutput which, double* cliques, double* log_partition) {
    std::fill_n(log_partition, scores_.n_examples(), 0.0);
    const std::size_t n_cliques = topology_.n_cliques();
    if (which == CliqueOutput::sum) std::fill_n(cliques, scores_.n_examples() * n_cliques, 0.0);
    SumPasses passes(topology_, scores_, true, true);
    for_groups(scores_, n_threads_, [&](ChainWorkspace& workspace, std::span<ChainLane> lanes) {
        for (ChainLane& lane : lanes) {
            lane.nodes = nodes + static_cast<std::size_t>(scores_.offsets[lane.example]) * topology_.n_labels();
            if (which == CliqueOutput::sum) lane.clique_sums = cliques + lane.example * n_cliques;
        }
        passes.run(workspace, lanes, which != CliqueOutput::each, [&](const ChainLane& lane) {
            if (which == CliqueOutput::none || status_of(lane) != Status::ok) return;
            const ChainContext context = passes.context_of(lane);
            if (lane.clique_sums) return sum_cliques(context, lane, workspace, lane.clique_sums);
            double* out = cliques + static_cast<std::size_t>(scores_.edge_offsets[lane.example]) * n_cliques;
            for (std::size_t t = 1; t < lane.length; ++t, out += n_cliques) {
                edge_marginals(context, lane, t, workspace);
                std::copy_n(workspace.edge_marginals.data(), n_cliques, out);
            }
        });
        for (const ChainLane& lane : lanes) {
            statuses_[lane.example] = status_of(lane);
            log_partition[lane.example] = lane.log_partition;
        }
    });
}

void ChainOracle::entropy(double* out) {
    std::fill_n(out, scores_.n_examples(), 0.0);
    SumPasses passes(topology_, scores_, true, true);
    for_groups(scores_, n_threads_, [&](ChainWorkspace& workspace, std::span<ChainLane> lanes) {
        std::size_t n_nodes = 0;
        for (const ChainLane& lane : lanes) n_nodes += lane.length;
        double* rows = workspace.nodes.require(n_nodes * topology_.n_labels());
        for (ChainLane& lane : lanes) {
            lane.nodes = rows;
            rows += lane.length * topology_.n_labels();
        }
        passes.forward(workspace, lanes);
        passes.backward(workspace, lanes);
        for (const ChainLane& lane : lanes) {
            statuses_[lane.example] = status_of(lane);
            if (status_of(lane) != Status::ok) continue;
            const ChainContext context = passes.context_of(lane);
            out[lane.example] = entropy_of(context, lane, clique_energy(context, lane, workspace));
        }
    });
}

ChainScores ChainBlock::scores(const double* node, std::size_t length, const double* cliques) {
    offsets_[1] = static_cast<std::int64_t>(length);
    edge_offsets_[1] = offsets_[1] - 1;
    return {.offsets = offsets_,
            .edge_offsets = edge_offsets_,
            .node = node,
            .start = start_,
            .stop = stop_,
            .transition = cliques};
}

ChainBlock::Answer ChainBlock::best(const double* node, std::size_t length, const double* cliques,
                                    std::int32_t* labels) {
    const ChainScores own = scores(node, length, cliques);
    ChainLane lane{.length = length, .labels = labels};
    const ChainContext context{topology_, own, &table_, true, false};
    table_.fill(topology_, cliques, 1.0, Domain::logarithm, true, true);
    run_max(context, workspace_, {&lane, 1});
    return {lane.log_partition, status_of(lane)};
}

ChainBlock::Answer ChainBlock::marginals(const double* node, std::size_t length, const double* cliques,
                                         double* node_marginals, double* clique_sums) {
    const bool plain = topology_.is_plain() && !topology_.has_forbidden() && !start_ && !stop_;
    if (plain && topology_.n_labels() <= BlockTask::kMostLabels) {
        const std::size_t n_labels = topology_.n_labels();
        BlockTask task{length,
                       n_labels,
                       node,
                       cliques,
                       node_marginals,
                       clique_sums,
                       workspace_.rows.require(BlockTask::doubles_needed(length, n_labels))};
        if (routines().plain_block(task)) return {task.log_partition, Status::ok};
    }
    const ChainScores own = scores(node, length, cliques);
    ChainLane lane{.length = length, .nodes = node_marginals};
    ChainContext context{topology_, own, &table_, true, true};
    table_.fill(topology_, cliques, 1.0, Domain::exponential, true, true);
    lay_out(context, workspace_, {&lane, 1});
    routines().forward_scaled(context, workspace_, {&lane, 1});
    if (lane.out_of_range) {
        table_.fill(topology_, cliques, 1.0, Domain::logarithm, true, true);
        routines().forward_log(context, workspace_, {&lane, 1});
        routines().backward_log(context, workspace_, {&lane, 1});
    } else {
        routines().backward_scaled(context, workspace_, {&lane, 1});
    }
    const Status status = status_of(lane);
    if (status == Status::ok) sum_cliques(context, lane, workspace_, clique_sums);
    return {lane.log_partition, status};
}

}  // namespace dualfield
