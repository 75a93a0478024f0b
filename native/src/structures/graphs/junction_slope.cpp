// Changes of marginals on trees and junction trees.
//
// Elimination leaves the distribution of each node given its separator, p(y) = prod over steps p(y_s | separator_s).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "dualfield/core/layout.hpp"
#include "dualfield/structures/graphs/junction_parts.hpp"
#include "dualfield/structures/slope.hpp"

namespace dualfield {
namespace {

class JunctionSlope final : public Slope {
  public:
    explicit JunctionSlope(const Structure& structure) : structure_(structure), n_labels_(structure.n_labels()) {}

    Status begin(std::size_t example, const ScoreView& scores) override {
        if (example != example_) lay_out(example);
        read(scores, tables_);
        const double factor = scores.inverse_temperature;
        bool is_bad = false;
        for (double& value : tables_) {
            value = value > -kInfinity ? factor * value : value;
            is_bad |= !(value < kInfinity);
        }
        for (const Place& place : places_) {
            double* table = tables_.data() + steps_[place.step].table;
            for (std::size_t c = 0; place.limit && c < place.part.size(); ++c) table[c] += place.limit[place.part[c]];
        }
        return is_bad ? Status::bad_number : condition();
    }

    double derive(const ScoreView& direction, const PartSums& change) override {
        read(direction, means_);
        double total = 0.0;
        for (const Step& step : steps_) {
            // What is expected of the direction given the separator, and by how much a label is above that.
            double* values = means_.data() + step.table;
            const double* p = tables_.data() + step.table;
            message_.assign(step.below, 0.0);
            for (std::size_t c = 0; c < step.cells; ++c)
                if (p[c] > 0.0) message_[c % step.below] += p[c] * values[c];
            for (std::size_t c = 0; c < step.cells; ++c)
                values[c] = p[c] > 0.0 ? values[c] - message_[c % step.below] : 0.0;
            if (step.parent < 0) total += message_[0];
            hand_up(step, means_);
        }
        changes_.resize(tables_.size());
        for (std::size_t s = steps_.size(); s-- > 0;) {
            const Step& step = steps_[s];
            const double *p = tables_.data() + step.table, *values = means_.data() + step.table;
            const double* mass = separators_.data() + step.separator;
            double* out = changes_.data() + step.table;
            message_.assign(step.below, 0.0);
            if (step.parent >= 0) collect(step, changes_, message_);
            for (std::size_t c = 0; c < step.cells; ++c)
                out[c] = p[c] * (message_[c % step.below] + mass[c % step.below] * values[c]);
        }
        const double factor = direction.inverse_temperature;
        spread(factor, change);
        return factor * total;
    }

  private:
    // A step of the elimination: its node and its separator, labels of the node in the slowest place.
    struct Step {
        std::vector<std::int32_t> nodes;
        std::size_t cells = 0, below = 0;  // of its table, and of its separator
        std::size_t table = 0, separator = 0;
        std::int32_t parent = -1;              // the step that has the whole separator; -1: nothing is left
        std::vector<std::uint32_t> in_parent;  // [cells of the parent]: the cell of the separator
    };
    // Where the scores of some nodes are read: for each cell of a step the part, counted from where the own and the
    // shared ones begin; -1: there are none.
    struct Place {
        std::size_t step = 0;
        std::vector<std::uint32_t> part;
        std::int64_t own = -1, shared = -1;
        const double* limit = nullptr;
    };

    std::size_t power(std::size_t n) const {
        std::size_t out = 1;
        while (n-- > 0) out *= n_labels_;
        return out;
    }
    // The label of the node in a place of a step, in one of its cells.
    std::size_t label(const Step& step, std::size_t place, std::size_t cell) const {
        return cell / power(step.nodes.size() - 1 - place) % n_labels_;
    }
    static std::size_t find(const Step& step, std::int32_t node) {
        return static_cast<std::size_t>(std::find(step.nodes.begin(), step.nodes.end(), node) - step.nodes.begin());
    }

    void lay_out(std::size_t example) {
        example_ = example;
        structure_.list_junction(example, parts_);
        steps_.clear();
        step_of_.assign(structure_.length(example), 0);
        std::size_t cells = 0, below = 0;
        for (std::size_t s = 0; s < parts_.steps.size(); ++s) {
            Step step;
            step.nodes = parts_.steps[s];
            step.cells = power(step.nodes.size());
            step.below = step.cells / n_labels_;
            step.table = cells;
            step.separator = below;
            cells += step.cells;
            below += step.below;
            step_of_[static_cast<std::size_t>(step.nodes[0])] = s;
            steps_.push_back(std::move(step));
        }
        tables_.resize(cells);
        separators_.resize(below);
        for (Step& step : steps_) {
            if (step.nodes.size() == 1) continue;
            std::size_t up = steps_.size();
            for (std::size_t j = 1; j < step.nodes.size(); ++j)
                up = std::min(up, step_of_[static_cast<std::size_t>(step.nodes[j])]);
            step.parent = static_cast<std::int32_t>(up);
            step.in_parent = project(steps_[up], {step.nodes.begin() + 1, step.nodes.end()});
        }
        places_.clear();
        const auto n = static_cast<std::int64_t>(n_labels_);
        for (const JunctionParts::Factor& factor : parts_.factors) {
            place(nodes_of(factor.first, factor.second));
            places_.back().own = factor.row < 0 ? -1 : factor.row * n * (factor.second < 0 ? 1 : n);
            places_.back().shared = factor.shared;
        }
        for (const JunctionParts::Limit& limit : parts_.limits) {
            place(nodes_of(limit.first, limit.second));
            places_.back().limit = limit.table;
        }
        for (const JunctionParts::Scope& scope : parts_.scopes) {
            place(scope.nodes);
            places_.back().own = scope.own;
            places_.back().shared = scope.shared;
            places_.back().limit = scope.limit;
        }
    }
    // For each cell of a step, the labels of some of its nodes as one number, the first one slowest.
    std::vector<std::uint32_t> project(const Step& step, const std::vector<std::int32_t>& nodes) const {
        std::vector<std::uint32_t> out(step.cells, 0);
        for (const std::int32_t node : nodes) {
            const std::size_t place = find(step, node);
            for (std::size_t c = 0; c < step.cells; ++c)
                out[c] = static_cast<std::uint32_t>(out[c] * n_labels_ + label(step, place, c));
        }
        return out;
    }
    static std::vector<std::int32_t> nodes_of(std::int32_t first, std::int32_t second) {
        return second < 0 ? std::vector{first} : std::vector{first, second};
    }
    void place(const std::vector<std::int32_t>& nodes) {
        std::size_t s = steps_.size();
        for (const std::int32_t node : nodes) s = std::min(s, step_of_[static_cast<std::size_t>(node)]);
        places_.push_back({.step = s, .part = project(steps_[s], nodes)});
    }

    // Scores of all parts into the tables of the steps, without the inverse temperature.
    void read(const ScoreView& view, std::vector<double>& tables) const {
        tables.assign(tables_.size(), 0.0);
        for (const Step& step : steps_) {
            const double* row = view.own[0] + static_cast<std::size_t>(step.nodes[0]) * n_labels_;
            for (std::size_t c = 0; c < step.cells; ++c) tables[step.table + c] = row[c / step.below];
        }
        for (const Place& place : places_) {
            const double* shared = place.shared < 0 || !view.shared ? nullptr : view.shared + place.shared;
            const double* own = place.own < 0 || !view.own[1] ? nullptr : view.own[1] + place.own;
            double* table = tables.data() + steps_[place.step].table;
            if (!own && !shared) continue;
            for (std::size_t c = 0; c < place.part.size(); ++c) {
                const std::uint32_t part = place.part[c];
                table[c] += (shared ? shared[part] : 0.0) + (own ? own[part] : 0.0);
            }
        }
    }

    // From scores to conditional probabilities, and the probabilities of separators.
    Status condition() {
        double total = 0.0;
        for (const Step& step : steps_) {
            double* table = tables_.data() + step.table;
            message_.assign(step.below, -kInfinity);
            sums_.assign(step.below, 0.0);
            for (std::size_t c = 0; c < step.cells; ++c)
                message_[c % step.below] = std::max(message_[c % step.below], table[c]);
            for (std::size_t c = 0; c < step.cells; ++c) {
                const double highest = message_[c % step.below];
                table[c] = highest > -kInfinity ? std::exp(table[c] - highest) : 0.0;
                sums_[c % step.below] += table[c];
            }
            for (std::size_t c = 0; c < step.cells; ++c)
                if (table[c] > 0.0) table[c] /= sums_[c % step.below];
            for (std::size_t b = 0; b < step.below; ++b)
                if (sums_[b] > 0.0) message_[b] += std::log(sums_[b]);
            if (step.parent < 0) total += message_[0];
            hand_up(step, tables_);
        }
        if (!(total < kInfinity)) return Status::bad_number;
        if (!(total > -kInfinity)) return Status::impossible;
        changes_.resize(tables_.size());
        for (std::size_t s = steps_.size(); s-- > 0;) {
            const Step& step = steps_[s];
            message_.assign(step.below, step.parent < 0 ? 1.0 : 0.0);
            if (step.parent >= 0) collect(step, changes_, message_);
            std::copy(message_.begin(), message_.end(),
                      separators_.begin() + static_cast<std::ptrdiff_t>(step.separator));
            for (std::size_t c = 0; c < step.cells; ++c)
                changes_[step.table + c] = tables_[step.table + c] * message_[c % step.below];
        }
        return Status::ok;
    }

    // Adds the message of a step to the table of its parent.
    void hand_up(const Step& step, std::vector<double>& tables) const {
        if (step.parent < 0) return;
        double* table = tables.data() + steps_[static_cast<std::size_t>(step.parent)].table;
        for (std::size_t c = 0; c < step.in_parent.size(); ++c) table[c] += message_[step.in_parent[c]];
    }
    // Sums a table of the parent over what is not in the separator of a step.
    void collect(const Step& step, const std::vector<double>& tables, std::vector<double>& out) const {
        const double* table = tables.data() + steps_[static_cast<std::size_t>(step.parent)].table;
        for (std::size_t c = 0; c < step.in_parent.size(); ++c) out[step.in_parent[c]] += table[c];
    }

    void spread(double scale, const PartSums& change) const {
        const PartLayout& layout = structure_.parts();
        for (std::size_t g = 0; g < layout.tables.size(); ++g)
            if (change.own[g])
                std::fill_n(change.own[g], layout.tables[g].n_rows(example_) * layout.tables[g].width, 0.0);
        if (change.shared) std::fill_n(change.shared, layout.n_shared, 0.0);
        for (const Step& step : steps_) {
            double* row = change.own[0] + static_cast<std::size_t>(step.nodes[0]) * n_labels_;
            for (std::size_t c = 0; c < step.cells; ++c) row[c / step.below] += scale * changes_[step.table + c];
        }
        for (const Place& place : places_) {
            double* own = place.own < 0 || !change.own[1] ? nullptr : change.own[1] + place.own;
            double* shared = place.shared < 0 || !change.shared ? nullptr : change.shared + place.shared;
            const double* table = changes_.data() + steps_[place.step].table;
            for (std::size_t c = 0; c < place.part.size(); ++c) {
                if (shared) shared[place.part[c]] += scale * table[c];
                if (own) own[place.part[c]] += scale * table[c];
            }
        }
    }

    const Structure& structure_;
    std::size_t n_labels_, example_ = std::numeric_limits<std::size_t>::max();
    JunctionParts parts_;
    std::vector<Step> steps_;
    std::vector<std::size_t> step_of_;  // [nodes]
    std::vector<Place> places_;
    std::vector<double> tables_;      // of each step: p(label | separator)
    std::vector<double> separators_;  // of each step: p(separator)
    std::vector<double> means_, changes_, message_, sums_;
};

}  // namespace

std::unique_ptr<Slope> junction_slope(const Structure& structure) {
    return std::make_unique<JunctionSlope>(structure);
}

}  // namespace dualfield
