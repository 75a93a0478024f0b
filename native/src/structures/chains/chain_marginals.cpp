// Queries that sum over labellings: log-partition, marginals, entropy.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "dualfield/structures/chains/chain_block.hpp"
#include "dualfield/structures/chains/chain_driver.hpp"
#include "dualfield/structures/chains/chain_queries.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {
namespace {

// Marginals of the cliques that end at node t into workspace.edge_marginals [n_cliques].
void edge_marginals(const ChainContext& context, const ChainLane& lane, std::size_t t, ChainWorkspace& workspace) {
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
        return;
    }
    double highest = -kInfinity;
    for (std::size_t c = 0; c < cliques.size(); ++c) {
        out[c] = alpha[cliques[c].from] + entries[cliques[c].forward_entry] + pulled[cliques[c].to];
        highest = std::max(highest, out[c]);
    }
    double total = 0.0;
    for (double& value : out) total += value = std::exp(value - highest);
    for (double& value : out) value /= total;
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

// H(y) = H(last state) + sum_t sum_s p(state t is s) H(state t - 1 | state t is s), after a forward pass: the chain
// rule. Only scores of what leads into one state are compared with each other, so that large ones do not cancel, as
// they would in logZ - <score, mu>.
class ChainRule {
  public:
    explicit ChainRule(const ChainTopology& topology)
        : topology_(topology),
          alpha_(topology.width()),
          here_(topology.width()),
          before_(topology.width()),
          logs_(topology.width() + topology.widest_in()),
          shares_(logs_.size()) {}

    // The table of the context must be one of logarithms.
    double entropy(const ChainContext& context, ChainWorkspace& workspace, const ChainLane& lane) {
        const std::size_t width = topology_.width();
        read_alpha(lane, lane.length - 1);
        std::copy_n(alpha_.begin(), width, logs_.begin());
        double entropy = split(width);
        std::copy_n(shares_.begin(), width, here_.begin());
        for (std::size_t t = lane.length - 1; t > 0; --t) {
            const TransitionTable& table =
                context.table_at(workspace, lane.example, t, Domain::logarithm, ChainContext::Direction::backward);
            read_alpha(lane, t - 1);
            std::fill(before_.begin(), before_.end(), 0.0);
            for (std::size_t slot = 0; slot < width; ++slot)
                if (here_[slot] > 0.0) entropy += here_[slot] * step_back(slot, table.backward.data());
            std::swap(here_, before_);
        }
        return std::max(entropy, 0.0);
    }

  private:
    void read_alpha(const ChainLane& lane, std::size_t t) {
        const double* row = lane.alpha + t * topology_.width();
        for (std::size_t slot = 0; slot < alpha_.size(); ++slot)
            alpha_[slot] = lane.out_of_range ? row[slot] : std::log(row[slot]);
    }

    // The entropy of the states before a state; its share is handed on to them.
    double step_back(std::size_t slot, const double* entries) {
        const ChainTopology::Group& group =
            topology_.groups()[static_cast<std::size_t>(topology_.states()[slot].group_out)];
        const std::uint32_t* from = topology_.in_slots().data() + group.first_in;
        entries += group.backward_block + (slot - group.first_out) * group.in_width;
        std::fill_n(logs_.begin(), group.in_width, -kInfinity);
        for (std::uint32_t i = 0; i < group.n_in; ++i) logs_[i] = alpha_[from[i]] + entries[i];
        const double entropy = split(group.in_width);
        for (std::uint32_t i = 0; i < group.n_in; ++i) before_[from[i]] += here_[slot] * shares_[i];
        return entropy;
    }

    // The first n of shares_ become proportional to the exponentials of logs_ and sum to 1; returns their entropy.
    double split(std::size_t n) {
        const double highest = *std::max_element(logs_.begin(), logs_.begin() + static_cast<std::ptrdiff_t>(n));
        const double total = routines().exponentials(logs_.data(), highest, n, shares_.data());
        double mean = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            shares_[i] /= total;
            if (shares_[i] > 0.0) mean += shares_[i] * (logs_[i] - highest);
        }
        return std::log(total) - mean;
    }

    const ChainTopology& topology_;
    std::vector<double> alpha_, here_,
        before_;  // by state: logarithms at a node, shares at the node after it and there
    std::vector<double> logs_, shares_;
};

}  // namespace

ChainQueries::ChainQueries(const ChainTopology& topology, const ChainScores& scores, std::size_t n_threads,
                           Status* statuses)
    : topology_(topology), scores_(scores), n_threads_(n_threads), statuses_(statuses) {
    std::fill_n(statuses, scores.n_examples(), Status::ok);
}

void ChainQueries::log_partition(double* out) {
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

void ChainQueries::marginals(double* nodes, CliqueOutput which, double* cliques, double* log_partition) {
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

void ChainQueries::entropy(double* out) {
    std::fill_n(out, scores_.n_examples(), 0.0);
    SumPasses passes(topology_, scores_, true, false);
    for_groups(scores_, n_threads_, [&](ChainWorkspace& workspace, std::span<ChainLane> lanes) {
        passes.forward(workspace, lanes);
        ChainRule rule(topology_);
        for (const ChainLane& lane : lanes) {
            statuses_[lane.example] = status_of(lane);
            if (status_of(lane) == Status::ok) out[lane.example] = rule.entropy(passes.logarithmic(), workspace, lane);
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
