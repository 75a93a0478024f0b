// Queries that return labellings or scores of labellings: argmax, maximum, max-marginals, n-best, samples, score.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "dualfield/core/random.hpp"
#include "dualfield/core/sizes.hpp"
#include "dualfield/structures/chains/chain.hpp"
#include "dualfield/structures/chains/chain_driver.hpp"
#include "dualfield/structures/chains/chain_queries.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {
namespace {

// The states that lead into one state, and the table entries between: what every walk from the end needs.
struct Predecessors {
    std::uint32_t n;
    const std::uint32_t* slots;
    const double* entries;
};

// The table of edge t laid out by target state.
const double* backward_entries(const ChainContext& context, ChainWorkspace& workspace, std::size_t example,
                               std::size_t t, Domain domain) {
    return context.table_at(workspace, example, t, domain, ChainContext::Direction::backward).backward.data();
}

Predecessors predecessors(const ChainTopology& topology, const double* entries, std::size_t slot) {
    const ChainTopology::Group& group = topology.groups()[static_cast<std::size_t>(topology.states()[slot].group_out)];
    return {group.n_in, topology.in_slots().data() + group.first_in,
            entries + group.backward_block + (slot - group.first_out) * group.in_width};
}

void to_weights(std::vector<double>& weights, bool logarithmic) {
    if (!logarithmic) return;
    const double highest = *std::max_element(weights.begin(), weights.end());
    for (double& w : weights) w = std::exp(w - highest);
}

// Forward filtering was done; sample the last state, then each predecessor given its successor.
void sample_path(const ChainContext& context, ChainWorkspace& workspace, const ChainLane& lane, RandomStream& random,
                 std::vector<double>& weights, std::int32_t* labels) {
    const ChainTopology& topology = context.topology;
    const std::size_t width = topology.width();
    const bool logarithmic = lane.out_of_range;
    const double* last = lane.alpha + (lane.length - 1) * width;
    weights.assign(last, last + width);
    to_weights(weights, logarithmic);
    std::size_t slot = draw_index(weights, random.uniform());
    for (std::size_t t = lane.length - 1;; --t) {
        labels[t] = topology.states()[slot].label;
        if (t == 0) return;
        const Predecessors in = predecessors(topology,
                                             backward_entries(context, workspace, lane.example, t,
                                                              logarithmic ? Domain::logarithm : Domain::exponential),
                                             slot);
        const double* alpha = lane.alpha + (t - 1) * width;
        weights.resize(in.n);
        for (std::uint32_t i = 0; i < in.n; ++i)
            weights[i] = logarithmic ? alpha[in.slots[i]] + in.entries[i] : alpha[in.slots[i]] * in.entries[i];
        to_weights(weights, logarithmic);
        slot = in.slots[draw_index(weights, random.uniform())];
    }
}

// The n best ways to reach every state, node by node (list Viterbi); rows are shifted as in MaxPlus, so that the first
// is argmax.
class ListViterbi {
  public:
    // k: at most the number of labellings there may be; see most_labellings.
    ListViterbi(const ChainContext& context, ChainWorkspace& workspace, const ChainLane& lane, std::size_t k)
        : context_(context),
          topology_(context.topology),
          workspace_(workspace),
          lane_(lane),
          k_(k),
          width_(topology_.width()),
          scores_(checked_product(2, width_, checked_ranks(k)), -kInfinity),
          back_(checked_product(lane.length, width_, k), -1) {}

    // Fills labels [k][stride] at the example's nodes, -1 where there are fewer than k labellings.
    void solve(std::int32_t* labels, std::size_t stride) {
        for (std::size_t label = 0; label < topology_.n_labels(); ++label)
            score(0, topology_.start_slot(label))[0] = node(0, label);
        shift_to_zero(0);
        for (std::size_t t = 1; t < lane_.length; ++t) {
            const double* entries = backward_entries(context_, workspace_, lane_.example, t, Domain::logarithm);
            for (std::size_t slot = 0; slot < width_; ++slot) {
                std::fill_n(score(t, slot), k_, -kInfinity);
                if (topology_.states()[slot].label >= 0 && topology_.states()[slot].group_out >= 0)
                    extend(t, slot, entries);
            }
            shift_to_zero(t);
        }
        collect(labels, stride);
    }

  private:
    static std::size_t checked_ranks(std::size_t k) {
        if (k >= std::numeric_limits<std::uint32_t>::max()) throw std::length_error("ranks of labellings have 32 bits");
        return k;
    }
    struct Candidate {
        double score;
        std::uint32_t in, rank;
        // Best score on top; among equals the lowest state, then the better rank.
        bool operator<(const Candidate& other) const {
            if (score != other.score) return score < other.score;
            return in != other.in ? in > other.in : rank > other.rank;
        }
    };

    double* score(std::size_t t, std::size_t slot) { return scores_.data() + ((t & 1) * width_ + slot) * k_; }
    double node(std::size_t t, std::size_t label) const {
        return node_score(context_.scores, topology_.n_labels(), lane_.example, t, label);
    }

    void extend(std::size_t t, std::size_t slot, const double* entries) {
        const Predecessors in = predecessors(topology_, entries, slot);
        heap_.clear();
        for (std::uint32_t i = 0; i < in.n; ++i) push(t, in, i, 0);
        std::make_heap(heap_.begin(), heap_.end());
        const double here = node(t, static_cast<std::size_t>(topology_.states()[slot].label));
        double* out = score(t, slot);
        for (std::size_t r = 0; r < k_ && !heap_.empty(); ++r) {
            std::pop_heap(heap_.begin(), heap_.end());
            const Candidate best = heap_.back();
            heap_.pop_back();
            out[r] = best.score + here;
            back_[(t * width_ + slot) * k_ + r] = static_cast<std::int64_t>(in.slots[best.in] * k_ + best.rank);
            if (push(t, in, best.in, best.rank + 1)) std::push_heap(heap_.begin(), heap_.end());
        }
    }

    bool push(std::size_t t, const Predecessors& in, std::uint32_t i, std::uint32_t rank) {
        if (rank >= k_) return false;
        const double s = score(t - 1, in.slots[i])[rank] + in.entries[i];
        if (!(s > -kInfinity)) return false;
        heap_.push_back({s, i, rank});
        return true;
    }

    void shift_to_zero(std::size_t t) {
        double* row = score(t, 0);
        const double highest = *std::max_element(row, row + width_ * k_);
        if (highest > -kInfinity)
            for (std::size_t i = 0; i < width_ * k_; ++i) row[i] -= highest;
    }

    void collect(std::int32_t* labels, std::size_t stride) {
        const double* last = score(lane_.length - 1, 0);
        heap_.clear();
        const auto slots = topology_.by_last_label();
        for (std::uint32_t i = 0; i < slots.size(); ++i)
            for (std::uint32_t r = 0; r < k_; ++r)
                if (last[slots[i] * k_ + r] > -kInfinity) heap_.push_back({last[slots[i] * k_ + r], i, r});
        const std::size_t found = std::min(k_, heap_.size());
        std::partial_sort(heap_.begin(), heap_.begin() + static_cast<std::ptrdiff_t>(found), heap_.end(),
                          [](const Candidate& a, const Candidate& b) { return b < a; });
        for (std::size_t r = 0; r < k_; ++r) {
            std::int32_t* out = labels + r * stride;
            if (r >= found) {
                std::fill_n(out, lane_.length, -1);
                continue;
            }
            std::size_t at = slots[heap_[r].in] * k_ + heap_[r].rank;
            for (std::size_t t = lane_.length - 1;; --t) {
                out[t] = topology_.states()[at / k_].label;
                if (t == 0) break;
                at = static_cast<std::size_t>(back_[t * width_ * k_ + at]);
            }
        }
    }

    const ChainContext& context_;
    const ChainTopology& topology_;
    ChainWorkspace& workspace_;
    const ChainLane& lane_;
    const std::size_t k_, width_;
    std::vector<double> scores_;      // [2][width][k]
    std::vector<std::int64_t> back_;  // [length][width][k]: slot * k + rank at the node before
    std::vector<Candidate> heap_;
};

// Upper bound on the labellings of an example, and on the k that is of use: n_labels^length, or `most` if that is less.
std::size_t most_labellings(std::size_t n_labels, std::size_t length, std::size_t most) {
    std::size_t count = 1;
    for (std::size_t t = 0; t < length && count < most && n_labels > 1; ++t)
        count = std::min(most, saturated_product(count, n_labels));
    return count;
}

double path_score(const ChainTopology& topology, const ChainScores& scores, std::size_t example,
                  const std::int32_t* labels) {
    const std::size_t length = scores.length(example);
    double total = 0.0, lost = 0.0;
    const auto add = [&](double score) {  // Kahan's sum: 100,000 nodes cost no digits
        const double corrected = score - lost, sum = total + corrected;
        lost = sum > -kInfinity ? (sum - total) - corrected : 0.0;
        total = sum;
    };
    std::uint32_t slot = 0;
    for (std::size_t t = 0; t < length; ++t) {
        const auto label = static_cast<std::size_t>(labels[t]);
        add(node_score(scores, topology.n_labels(), example, t, label));
        if (t == 0) {
            slot = topology.start_slot(label);
            continue;
        }
        const std::int64_t clique = topology.successor(slot, labels[t]);
        if (clique < 0 || !topology.cliques()[static_cast<std::size_t>(clique)].allowed) return -kInfinity;
        slot = topology.cliques()[static_cast<std::size_t>(clique)].to;
        if (const double* transition = scores.transition_at(example, t, topology.n_cliques()))
            add(transition[clique] * scores.inverse_temperature);
    }
    return total;
}

}  // namespace

void ChainQueries::argmax(std::int32_t* labels) {
    SharedTables tables(topology_, scores_);
    const ChainContext context{topology_, scores_, tables.get(Domain::logarithm), true, false};
    for_groups(scores_, n_threads_, [&](ChainWorkspace& workspace, std::span<ChainLane> lanes) {
        for (ChainLane& lane : lanes) lane.labels = labels + scores_.offsets[lane.example];
        run_max(context, workspace, lanes);
        for (const ChainLane& lane : lanes) statuses_[lane.example] = status_of(lane);
    });
}

void ChainQueries::maximum(double* out) {
    std::fill_n(out, scores_.n_examples(), 0.0);
    SharedTables tables(topology_, scores_);
    const ChainContext context{topology_, scores_, tables.get(Domain::logarithm), false, false};
    for_groups(scores_, n_threads_, [&](ChainWorkspace& workspace, std::span<ChainLane> lanes) {
        run_max(context, workspace, lanes);
        for (const ChainLane& lane : lanes) {
            statuses_[lane.example] = status_of(lane);
            out[lane.example] = lane.log_partition;
        }
    });
}

void ChainQueries::max_marginals(double* nodes) {
    SharedTables tables(topology_, scores_);
    const ChainContext context{topology_, scores_, tables.get(Domain::logarithm), true, true};
    for_groups(scores_, n_threads_, [&](ChainWorkspace& workspace, std::span<ChainLane> lanes) {
        for (ChainLane& lane : lanes)
            lane.nodes = nodes + static_cast<std::size_t>(scores_.offsets[lane.example]) * topology_.n_labels();
        run_max(context, workspace, lanes);
        for (const ChainLane& lane : lanes) statuses_[lane.example] = status_of(lane);
    });
}

void ChainQueries::sample(std::size_t n_samples, std::uint64_t seed, std::int32_t* labels) {
    SumPasses passes(topology_, scores_, true, false);
    for_groups(scores_, n_threads_, [&](ChainWorkspace& workspace, std::span<ChainLane> lanes) {
        passes.forward(workspace, lanes);
        std::vector<double> weights;
        for (const ChainLane& lane : lanes) {
            statuses_[lane.example] = status_of(lane);
            if (status_of(lane) != Status::ok) continue;
            const ChainContext context = passes.context_of(lane);
            RandomStream random(seed, lane.example);
            for (std::size_t s = 0; s < n_samples; ++s)
                sample_path(context, workspace, lane, random, weights,
                            labels + s * scores_.n_nodes() + scores_.offsets[lane.example]);
        }
    });
}

void ChainQueries::k_best(std::size_t k, std::int32_t* labels, double* best) {
    // An empty example has one labelling, of score 0.
    for (std::size_t i = 0; i < scores_.n_examples(); ++i)
        for (std::size_t r = 0; r < k; ++r) best[i * k + r] = r == 0 ? 0.0 : -kInfinity;
    SharedTables tables(topology_, scores_);
    const ChainContext context{topology_, scores_, tables.get(Domain::logarithm), false, false};
    for_groups(scores_, n_threads_, [&](ChainWorkspace& workspace, std::span<ChainLane> lanes) {
        run_max(context, workspace, lanes);  // cheap beside the lists, and it finds bad scores
        for (const ChainLane& lane : lanes) {
            statuses_[lane.example] = status_of(lane);
            if (status_of(lane) != Status::ok) continue;
            std::int32_t* out = labels + scores_.offsets[lane.example];
            const std::size_t useful = most_labellings(topology_.n_labels(), lane.length, k);
            ListViterbi(context, workspace, lane, useful).solve(out, scores_.n_nodes());
            for (std::size_t r = 0; r < k; ++r) {
                std::int32_t* path = out + r * scores_.n_nodes();
                if (r >= useful) std::fill_n(path, lane.length, -1);
                best[lane.example * k + r] =
                    path[0] < 0 ? -kInfinity : path_score(topology_, scores_, lane.example, path);
            }
        }
    });
}

void ChainQueries::score(const std::int32_t* labels, double* out) {
    parallel_for(scores_.n_examples(), n_threads_, [&](std::size_t, std::size_t example) {
        out[example] = path_score(topology_, scores_, example, labels + scores_.offsets[example]);
        statuses_[example] = out[example] < kInfinity ? Status::ok : Status::bad_number;
    });
}

void clique_indices(const ChainTopology& topology, std::span<const std::int64_t> offsets, const std::int32_t* labels,
                    std::int64_t* out) {
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        std::uint32_t slot = 0;
        bool lost = false;  // a window that is not listed: no state to go on from
        for (std::int64_t at = offsets[i]; at < offsets[i + 1]; ++at) {
            if (at == offsets[i]) {
                slot = topology.start_slot(static_cast<std::size_t>(labels[at]));
                continue;
            }
            const std::int64_t clique = lost ? -1 : topology.successor(slot, labels[at]);
            lost = clique < 0;
            if (!lost) slot = topology.cliques()[static_cast<std::size_t>(clique)].to;
            *out++ = clique;
        }
    }
}

}  // namespace dualfield
