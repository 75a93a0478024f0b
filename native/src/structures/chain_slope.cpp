// Changes of the marginals of chains of any order.
#include "dualfield/structures/chain_slope.hpp"

#include <algorithm>
#include <vector>

#include "dualfield/structures/chain_driver.hpp"
#include "dualfield/structures/slope.hpp"
#include "dualfield/vector/routines.hpp"
#include "local_scores.hpp"

namespace dualfield {
namespace {

class ChainSlope final : public Slope {
  public:
    explicit ChainSlope(const ChainStructure& chain)
        : chain_(chain),
          topology_(chain.topology()),
          width_(topology_.width()),
          size_(topology_.forward_size()),
          n_labels_(chain.n_labels()) {}

    Status begin(std::size_t example, const ScoreView& scores) override {
        length_ = chain_.length(example);
        if (length_ == 0) return Status::ok;
        const LocalScores local(chain_, {example, example + 1}, scores);
        SumPasses passes(topology_, local.scores, true, true);
        ChainLane lane{.length = length_, .nodes = workspace_.nodes.require(length_ * n_labels_)};
        passes.forward(workspace_, {&lane, 1});
        const Status status = status_of(lane);
        if (status != Status::ok) return status;
        passes.backward(workspace_, {&lane, 1});
        const ChainContext context = passes.context_of(lane);
        shares_.require(std::max<std::size_t>(checked_product(length_ - 1, size_), 1));
        for (std::size_t t = 1; t < length_; ++t) share(context, lane, t);
        walk(lane.nodes);
        return Status::ok;
    }

    double derive(const ScoreView& direction, const PartSums& change) override {
        const PartLayout& layout = chain_.parts();
        if (length_ == 0) {
            std::fill_n(change.shared, layout.n_shared, 0.0);
            return 0.0;
        }
        const bool each = chain_.with_edges();
        const std::size_t n_tables = each ? std::max<std::size_t>(length_ - 1, 1) : 1;
        double* steps = steps_.require(std::max<std::size_t>(checked_product(n_tables, size_), 1));
        std::fill_n(steps, n_tables * size_, 0.0);
        double* rows = rows_.require(3 * length_ * width_);
        read(direction);
        const ChainSlopeTask task{.topology = &topology_,
                                  .length = length_,
                                  .shares = shares_.data(),
                                  .states = states_.data(),
                                  .node = node_.data(),
                                  .cliques = cliques_.data(),
                                  .clique_stride = each ? size_ : 0,
                                  .behind = rows,
                                  .whole = rows + length_ * width_,
                                  .change = rows + 2 * length_ * width_,
                                  .steps = steps,
                                  .step_stride = each ? size_ : 0};
        const double mean = routines().chain_slopes(task);
        spread(task.change, steps, change);
        return mean;
    }

  private:
    // p(state at t | state at t - 1).
    void share(const ChainContext& context, const ChainLane& lane, std::size_t t) {
        const Domain domain = lane.out_of_range ? Domain::logarithm : Domain::exponential;
        const TransitionTable& table =
            context.table_at(workspace_, lane.example, t, domain, ChainContext::Direction::forward);
        const double *entries = table.forward.data(), *pulled = lane.emission + t * width_;
        double* out = shares_.data() + (t - 1) * size_;
        if (domain == Domain::exponential) return routines().step_shares(topology_, entries, pulled, out);
        for (const ChainTopology::Group& group : topology_.groups())
            for (std::uint32_t i = 0; i < group.n_in; ++i) {
                const std::size_t entry = group.forward_block + i * group.out_width;
                double* row = out + entry;
                double highest = -kInfinity;
                std::fill_n(row, group.out_width, -kInfinity);
                for (std::uint32_t j = 0; j < group.n_out; ++j) {
                    row[j] = entries[entry + j] + pulled[group.first_out + j];
                    highest = std::max(highest, row[j]);
                }
                // A state that nothing follows has no probability.
                const double total = routines().exponentials(row, std::max(highest, -1e300), group.out_width, row);
                for (std::uint32_t j = 0; total > 0.0 && j < group.n_out; ++j) row[j] /= total;
            }
    }

    // The probabilities of the states, from those of the first labels.
    void walk(const double* nodes) {
        double* states = states_.require(length_ * width_);
        std::fill_n(states, length_ * width_, 0.0);
        for (std::size_t k = 0; k < n_labels_; ++k)
            if (nodes[k] > 0.0) states[topology_.start_slot(k)] = nodes[k];
        for (std::size_t t = 1; t < length_; ++t, states += width_) {
            const double* shares = shares_.data() + (t - 1) * size_;
            for (const ChainTopology::Group& group : topology_.groups())
                for (std::uint32_t i = 0; i < group.n_in; ++i) {
                    const double mass = states[topology_.in_slots()[group.first_in + i]];
                    const double* row = shares + group.forward_block + i * group.out_width;
                    double* out = states + width_ + group.first_out;
                    for (std::uint32_t j = 0; j < group.n_out; ++j) out[j] += mass * row[j];
                }
        }
    }

    // The direction by states and by entries of forward tables, times the inverse temperature.
    void read(const ScoreView& direction) {
        const double factor = direction.inverse_temperature;
        const auto states = topology_.states();
        const double* ends = chain_.with_ends() ? direction.shared : nullptr;
        double* node = node_.require(length_ * width_);
        for (std::size_t t = 0; t < length_; ++t)
            for (std::size_t s = 0; s < width_; ++s) {
                const std::int32_t label = states[s].label;
                double value = label < 0 ? 0.0 : direction.own[0][t * n_labels_ + static_cast<std::size_t>(label)];
                if (ends && label >= 0 && t == 0) value += ends[chain_.start_begin() + static_cast<std::size_t>(label)];
                if (ends && label >= 0 && t + 1 == length_)
                    value += ends[chain_.stop_begin() + static_cast<std::size_t>(label)];
                node[t * width_ + s] = factor * value;
            }
        const auto cliques = topology_.cliques();
        const double* edges = chain_.with_edges() ? direction.own[1] : nullptr;
        const std::size_t n_tables = chain_.with_edges() ? std::max<std::size_t>(length_ - 1, 1) : 1;
        double* tables = cliques_.require(std::max<std::size_t>(n_tables * size_, 1));
        std::fill_n(tables, n_tables * size_, 0.0);
        const std::size_t n_read = chain_.with_edges() ? length_ - 1 : 1;
        for (std::size_t e = 0; e < n_read; ++e)
            for (std::size_t c = 0; c < cliques.size(); ++c)
                tables[e * size_ + cliques[c].forward_entry] =
                    factor *
                    ((direction.shared ? direction.shared[c] : 0.0) + (edges ? edges[e * cliques.size() + c] : 0.0));
    }

    void spread(const double* states, const double* steps, const PartSums& change) const {
        const auto cliques = topology_.cliques();
        const auto of = topology_.states();
        std::fill_n(change.own[0], length_ * n_labels_, 0.0);
        for (std::size_t t = 0; t < length_; ++t)
            for (std::size_t s = 0; s < width_; ++s)
                if (of[s].label >= 0)
                    change.own[0][t * n_labels_ + static_cast<std::size_t>(of[s].label)] += states[t * width_ + s];
        std::fill_n(change.shared, chain_.parts().n_shared, 0.0);
        const std::size_t n_tables = chain_.with_edges() ? length_ - 1 : 1;
        for (std::size_t e = 0; e < n_tables; ++e)
            for (std::size_t c = 0; c < cliques.size(); ++c) {
                const double value = steps[e * size_ + cliques[c].forward_entry];
                change.shared[c] += value;
                if (chain_.with_edges()) change.own[1][e * cliques.size() + c] = value;
            }
        if (!chain_.with_ends()) return;
        std::copy_n(change.own[0], n_labels_, change.shared + chain_.start_begin());
        std::copy_n(change.own[0] + (length_ - 1) * n_labels_, n_labels_, change.shared + chain_.stop_begin());
    }

    const ChainStructure& chain_;
    const ChainTopology& topology_;
    std::size_t width_, size_, n_labels_, length_ = 0;
    ChainWorkspace workspace_;
    Buffer shares_, states_, node_, cliques_, rows_, steps_;
};

}  // namespace

std::unique_ptr<Slope> ChainStructure::slope() const {
    return std::make_unique<ChainSlope>(*this);
}

}  // namespace dualfield
