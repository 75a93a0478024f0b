// Best and worst labelling among those that sparse tables of cliques have mass on: messages from the leaves of the
// junction tree to its roots, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "clique_tables.hpp"
#include "dualfield/core/layout.hpp"

namespace dualfield {

class CliquePaths {
  public:
    // Over some cliques of an example, in its order: all of them, or those with more than one entry. What is left out
    // has one entry and adds the same to all labellings. Scores of the labels with mass are read.
    void find(const CliqueTables& tables, const CliqueLayout& layout, std::size_t i,
              const std::vector<std::uint32_t>& some, const ScoreView& scores) {
        tables_ = &tables;
        layout_ = &layout;
        first_ = layout.first(i);
        some_ = &some;
        messages_.clear();
        maximum_ = 0.0;
        ranges_.assign(layout.count(i), {0, 0});
        if (labels_.size() < 64) labels_.resize(64);
        for (std::size_t at = some.size(); at-- > 0;) {
            const std::size_t begin = messages_.size();
            for (std::uint32_t e = 0; e < tables.edges(first_ + some[at]).size(); ++e) take(some[at], e, begin, scores);
            ranges_[some[at]] = {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(messages_.size())};
            if (layout.clique(first_ + some[at]).parent < 0) maximum_ += messages_[begin].high;
        }
    }

    double maximum() const { return maximum_; }

    // The two labellings, at the nodes of these cliques.
    void trace(std::vector<std::uint32_t>& best, std::vector<std::uint32_t>& worst) const {
        for (const std::uint32_t c : *some_) {
            const Clique& one = layout_->clique(first_ + c);
            // Where its parent is left out it has one message.
            const bool is_root = one.parent < 0 || ranges_[static_cast<std::size_t>(one.parent)].end == 0;
            const auto message = [&](const std::vector<std::uint32_t>& labels) -> const Message& {
                return is_root ? messages_[ranges_[c].begin] : at(c, layout_->code(layout_->separator(one), labels));
            };
            const auto there = tables_->edges(first_ + c);
            const FlowEdge high = there[message(best).high_edge], low = there[message(worst).low_edge];
            if (is_root) {  // the same for both
                layout_->decode(layout_->separator(one), high.from, best);
                layout_->decode(layout_->separator(one), low.from, worst);
            }
            layout_->decode(layout_->residual(one), high.to, best);
            layout_->decode(layout_->residual(one), low.to, worst);
        }
    }

  private:
    struct Message {
        std::uint32_t from, high_edge, low_edge;
        double high, low;
    };
    struct Range {
        std::uint32_t begin, end;
    };

    void take(std::uint32_t c, std::uint32_t e, std::size_t begin, const ScoreView& scores) {
        const FlowEdge& edge = tables_->edges(first_ + c)[e];
        const Clique& one = layout_->clique(first_ + c);
        for (const std::int32_t v : layout_->separator(one)) reserve(v);
        for (const std::int32_t v : layout_->residual(one)) reserve(v);
        tables_->decode(first_ + c, edge, labels_);
        double high = score(one, scores), low = high;
        for (std::int32_t child = one.first_child; child >= 0;) {
            const Clique& below = layout_->clique(first_ + static_cast<std::size_t>(child));
            if (ranges_[static_cast<std::size_t>(child)].end > 0) {
                const Message& message =
                    at(static_cast<std::uint32_t>(child), layout_->code(layout_->separator(below), labels_));
                high += message.high;
                low += message.low;
            }
            child = below.next_sibling;
        }
        for (std::size_t m = begin; m < messages_.size(); ++m) {
            Message& known = messages_[m];
            if (known.from != edge.from) continue;
            if (high > known.high) {
                known.high = high;
                known.high_edge = e;
            }
            if (low < known.low) {
                known.low = low;
                known.low_edge = e;
            }
            return;
        }
        messages_.push_back({edge.from, e, e, high, low});
    }
    double score(const Clique& one, const ScoreView& scores) const {
        const std::size_t n = layout_->n_labels();
        double sum = 0.0;
        for (const std::int32_t v : layout_->residual(one)) {
            const auto node = static_cast<std::size_t>(v);
            sum += scores.own[0][node * n + labels_[node]];
        }
        for (const CliqueLayout::Factor& factor : layout_->factors(one)) {
            const std::size_t part = layout_->part(factor, labels_);
            sum += scores.shared[static_cast<std::size_t>(factor.shared) + part];
            if (factor.row >= 0) sum += scores.own[1][static_cast<std::size_t>(factor.row) * n * n + part];
        }
        return sum;
    }
    const Message& at(std::uint32_t c, std::uint32_t from) const {
        std::size_t m = ranges_[c].begin;
        while (m + 1 < ranges_[c].end && messages_[m].from != from) ++m;
        return messages_[m];
    }
    void reserve(std::int32_t node) {
        if (labels_.size() <= static_cast<std::size_t>(node)) labels_.resize(2 * static_cast<std::size_t>(node) + 1);
    }

    const CliqueTables* tables_ = nullptr;
    const CliqueLayout* layout_ = nullptr;
    const std::vector<std::uint32_t>* some_ = nullptr;
    std::size_t first_ = 0;
    double maximum_ = 0.0;
    std::vector<Message> messages_;
    std::vector<Range> ranges_;  // of each clique; empty where it is left out
    std::vector<std::uint32_t> labels_;
};

}  // namespace dualfield
