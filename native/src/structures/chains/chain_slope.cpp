// Changes of the marginals of chains of any order.
#include "dualfield/structures/chains/chain_slope.hpp"

#include <algorithm>
#include <vector>

#include "dualfield/structures/chains/chain_driver.hpp"
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
        shares_.require(std::max<std::size_t>(checked_product(length_ - 1, size_), 1));
        states_.require(length_ * width_);
        const LocalScores local(chain_, {example, example + 1}, scores);
        return begin_plain(local.scores) ? Status::ok : begin_any(local.scores);
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
        double* rows = rows_.require((3 * length_ + 2) * width_);
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
                                  .rest = rows + 3 * length_ * width_,
                                  .change = rows + 2 * length_ * width_,
                                  .steps = steps,
                                  .step_stride = each ? size_ : 0};
        const double mean = routines().chain_slopes(task);
        spread(task.change, steps, change);
        return mean;
    }

    void add_covariance(const PartLayout& layout, std::size_t example, double scale, double* out) override {
        if (!has_square_tables() || chain_.with_edges() || length_ == 0)
            return Slope::add_covariance(layout, example, scale, out);
        ChainCovarianceTask task{.length = length_,
                                 .n_labels = n_labels_,
                                 .width = width_,
                                 .shares = shares_.data(),
                                 .states = states_.data(),
                                 .memory = nullptr,
                                 .out = nullptr};
        task.memory = steps_.require(task.memory_size());
        task.out = joint_.require(checked_product(task.size(), task.size()));
        routines().chain_covariances(task);
        list_places();
        const std::size_t n = places_.size(), size = task.size(), n_own = length_ * n_labels_;
        // Labels are known with later ones, transitions with labels and transitions; ends are labels once more.
        const auto add = [&](std::size_t i, std::size_t j, double value) {
            out[i * n + j] += scale * value;
            if (i != j) out[j * n + i] += scale * value;
        };
        const std::size_t n_cliques = topology_.n_cliques(), ends = n_own + n_cliques;
        for (std::size_t i = 0; i < n_own; ++i) {
            const double* row = task.out + places_[i] * size;
            for (std::size_t j = i; j < n_own; ++j) add(i, j, row[places_[j]]);
        }
        for (std::size_t i = n_own; i < ends; ++i) {
            const double* row = task.out + places_[i] * size;
            for (std::size_t j = 0; j <= i; ++j) add(i, j, row[places_[j]]);
        }
        for (std::size_t i = ends; i < n; ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                const bool is_known = (j >= n_own && j < ends) || places_[j] < places_[i];
                const std::size_t from = is_known ? places_[j] : places_[i], to = is_known ? places_[i] : places_[j];
                add(i, j, task.out[from * size + to]);
            }
    }

  private:
    // Whether forward tables are [label before][width].
    bool has_square_tables() const {
        if (!topology_.is_plain() || topology_.groups().size() != 1) return false;
        const ChainTopology::Group& group = topology_.groups()[0];
        return group.n_in == n_labels_ && group.n_out == n_labels_ && group.first_out == 0 &&
               group.forward_block == 0 && group.out_width == width_;
    }
    // Where the parts of the example are among the places of ChainCovarianceTask.
    void list_places() {
        places_.clear();
        for (std::size_t t = 0; t < length_; ++t)
            for (std::size_t k = 0; k < n_labels_; ++k) places_.push_back(t * width_ + k);
        const std::size_t first_shared = places_.size();
        places_.resize(first_shared + chain_.parts().n_shared);
        const auto cliques = topology_.cliques();
        for (std::size_t c = 0; c < cliques.size(); ++c)
            places_[first_shared + c] = length_ * width_ + cliques[c].forward_entry;
        for (std::size_t k = 0; chain_.with_ends() && k < n_labels_; ++k) {
            places_[first_shared + chain_.start_begin() + k] = k;
            places_[first_shared + chain_.stop_begin() + k] = (length_ - 1) * width_ + k;
        }
    }

    // By one pass back and one forth, where that is safe.
    bool begin_plain(const ChainScores& scores) {
        if (!topology_.is_plain() || topology_.has_forbidden() || scores.transition_per_edge) return false;
        const std::size_t n_cliques = topology_.n_cliques();
        const bool is_known = scores.transition && kept_.size() == n_cliques &&
                              kept_temperature_ == scores.inverse_temperature &&
                              std::equal(kept_.begin(), kept_.end(), scores.transition);
        if (!is_known) {
            kept_.clear();
            table_.fill(topology_, scores.transition, scores.inverse_temperature, Domain::exponential, true, false);
            if (scores.transition) kept_.assign(scores.transition, scores.transition + n_cliques);
            kept_temperature_ = scores.inverse_temperature;
        }
        if (table_.bad_number || !table_.complete || !(table_.range < ChainSharesTask::kMostRange)) return false;
        double* rows = rows_.require(length_ * width_);
        for (std::size_t t = 0; t < length_; ++t) {
            const RowBounds bounds = routines().read_row(scores.node + t * n_labels_, nullptr, n_labels_,
                                                         scores.inverse_temperature, rows + t * width_);
            if (bounds.bad_number) return false;
        }
        const auto add = [&](const double* end, double* row) {
            for (std::size_t k = 0; end && k < n_labels_; ++k) row[k] += scores.inverse_temperature * end[k];
        };
        add(scores.start, rows);
        add(scores.stop, rows + (length_ - 1) * width_);
        return routines().plain_shares({.topology = &topology_,
                                        .length = length_,
                                        .table = table_.forward.data(),
                                        .rows = rows,
                                        .shares = shares_.data(),
                                        .states = states_.data(),
                                        .memory = steps_.require(std::max(size_, width_))});
    }

    Status begin_any(const ChainScores& scores) {
        SumPasses passes(topology_, scores, true, true);
        ChainLane lane{.length = length_, .nodes = workspace_.nodes.require(length_ * n_labels_)};
        passes.forward(workspace_, {&lane, 1});
        const Status status = status_of(lane);
        if (status != Status::ok) return status;
        passes.backward(workspace_, {&lane, 1});
        const ChainContext context = passes.context_of(lane);
        for (std::size_t t = 1; t < length_; ++t) share(context, lane, t);
        std::fill_n(states_.data(), width_, 0.0);
        for (std::size_t k = 0; k < n_labels_; ++k)
            if (lane.nodes[k] > 0.0) states_.data()[topology_.start_slot(k)] = lane.nodes[k];
        routines().walk_states(topology_, length_, shares_.data(), states_.data());
        return Status::ok;
    }

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

    // Calls use(slot, label) for the states, in the order of slots.
    template <class Use>
    void for_states(Use use) const {
        if (topology_.is_plain()) {
            for (std::size_t k = 0; k < n_labels_; ++k) use(k, k);
            return;
        }
        const auto states = topology_.states();
        for (std::size_t s = 0; s < width_; ++s)
            if (states[s].label >= 0) use(s, static_cast<std::size_t>(states[s].label));
    }

    // The direction by states and by entries of forward tables, times the inverse temperature.
    void read(const ScoreView& direction) {
        const double factor = direction.inverse_temperature;
        const double* ends = chain_.with_ends() ? direction.shared : nullptr;
        double* node = node_.require(length_ * width_);
        std::fill_n(node, length_ * width_, 0.0);
        for (std::size_t t = 0; t < length_; ++t) {
            const double* own = direction.own[0] + t * n_labels_;
            double* out = node + t * width_;
            for_states([&](std::size_t s, std::size_t label) { out[s] = factor * own[label]; });
        }
        if (ends)
            for_states([&](std::size_t s, std::size_t label) {
                node[s] += factor * ends[chain_.start_begin() + label];
                node[(length_ - 1) * width_ + s] += factor * ends[chain_.stop_begin() + label];
            });
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
        std::fill_n(change.own[0], length_ * n_labels_, 0.0);
        for (std::size_t t = 0; t < length_; ++t) {
            const double* row = states + t * width_;
            double* out = change.own[0] + t * n_labels_;
            for_states([&](std::size_t s, std::size_t label) { out[label] += row[s]; });
        }
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
    TransitionTable table_;     // of the transition scores that were seen last
    std::vector<double> kept_;  // which are these
    double kept_temperature_ = 0.0;
    Buffer shares_, states_, node_, cliques_, rows_, steps_, joint_;
    std::vector<std::size_t> places_;
};

}  // namespace

std::unique_ptr<Slope> ChainStructure::slope() const {
    return std::make_unique<ChainSlope>(*this);
}

}  // namespace dualfield
