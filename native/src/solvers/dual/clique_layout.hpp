// The junction trees of all examples of a problem, side by side.
//
// A clique is a set of nodes. All of them but its separator are its *residual*: every node is in the residual of one
// clique. A table that gives a mass to labels of each clique is that of a distribution over labellings if neighbours in
// the tree agree on the nodes that they share. Steps of an elimination whose nodes are all in one other clique are
// joined with it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "dualfield/objectives/problem.hpp"
#include "dualfield/structures/graphs/junction_parts.hpp"

namespace dualfield {

struct Clique {
    std::uint32_t nodes = 0, factors = 0, n_factors = 0;  // where its nodes and factors begin
    std::uint16_t n_separator = 0, n_nodes = 0;           // nodes of the separator come first
    std::int32_t parent = -1;                             // in the example
    std::int32_t first_child = -1, next_sibling = -1;
};

class CliqueLayout {
  public:
    using Factor = JunctionParts::Factor;

    // The structure must list its junctions.
    explicit CliqueLayout(const Problem& problem)
        : n_labels_(static_cast<std::uint32_t>(problem.structure->n_labels())) {
        JunctionParts parts;
        first_.push_back(0);
        for (std::size_t i = 0; i < problem.n_examples(); ++i) {
            problem.structure->list_junction(i, parts);
            add(parts, problem.length(i));
            first_.push_back(cliques_.size());
        }
    }

    std::uint32_t n_labels() const { return n_labels_; }
    std::size_t n_cliques() const { return cliques_.size(); }
    // Of an example: parents come before their children.
    std::size_t first(std::size_t i) const { return first_[i]; }
    std::size_t count(std::size_t i) const { return first_[i + 1] - first_[i]; }
    const Clique& clique(std::size_t number) const { return cliques_[number]; }
    std::span<const std::int32_t> separator(const Clique& one) const {
        return {nodes_.data() + one.nodes, one.n_separator};
    }
    std::span<const std::int32_t> residual(const Clique& one) const {
        return {nodes_.data() + one.nodes + one.n_separator, static_cast<std::size_t>(one.n_nodes - one.n_separator)};
    }
    std::span<const Factor> factors(const Clique& one) const { return {factors_.data() + one.factors, one.n_factors}; }

    // Labels of nodes as one number, and back.
    template <class Labels>
    std::uint32_t code(std::span<const std::int32_t> nodes, const Labels& labels) const {
        std::uint32_t found = 0;
        for (const std::int32_t v : nodes)
            found = found * n_labels_ + static_cast<std::uint32_t>(labels[static_cast<std::size_t>(v)]);
        return found;
    }
    template <class Labels>
    void decode(std::span<const std::int32_t> nodes, std::uint32_t code, Labels& labels) const {
        for (std::size_t j = nodes.size(); j-- > 1; code /= n_labels_)
            labels[static_cast<std::size_t>(nodes[j])] = code % n_labels_;
        if (!nodes.empty()) labels[static_cast<std::size_t>(nodes[0])] = code;
    }
    // The part of a factor that a labelling has, counted from the first.
    template <class Labels>
    std::uint32_t part(const Factor& factor, const Labels& labels) const {
        const auto one = static_cast<std::uint32_t>(labels[static_cast<std::size_t>(factor.first)]);
        return factor.second < 0
                   ? one
                   : one * n_labels_ + static_cast<std::uint32_t>(labels[static_cast<std::size_t>(factor.second)]);
    }

  private:
    struct Step {
        std::vector<std::int32_t> nodes, separator;
        std::size_t joined = 0;  // the step that it has become a part of, or itself
        std::int32_t parent = -1;
        bool has_grown = false;
    };

    void add(const JunctionParts& parts, std::size_t length) {
        std::vector<Step> steps(parts.steps.size());
        std::vector<std::int32_t> step_of(length, 0);
        for (std::size_t s = 0; s < steps.size(); ++s) step_of[index(parts.steps[s][0])] = static_cast<std::int32_t>(s);
        for (std::size_t s = 0; s < steps.size(); ++s) {
            steps[s].nodes = parts.steps[s];
            steps[s].separator.assign(parts.steps[s].begin() + 1, parts.steps[s].end());
            steps[s].joined = s;
            for (const std::int32_t v : steps[s].separator)
                if (steps[s].parent < 0 || step_of[index(v)] < steps[s].parent) steps[s].parent = step_of[index(v)];
        }
        // A step whose nodes are the separator of an earlier one takes the place of that one.
        for (std::size_t s = 0; s < steps.size(); ++s) {
            if (steps[s].parent < 0) continue;
            Step& above = steps[index(steps[s].parent)];
            if (above.has_grown || above.separator.size() + 1 != steps[s].separator.size()) continue;
            above.nodes = steps[s].nodes;
            above.has_grown = true;
            steps[s].joined = index(steps[s].parent);
        }
        const auto home = [&](std::int32_t step) {
            std::size_t s = index(step);
            while (steps[s].joined != s) s = steps[s].joined;
            return s;
        };
        std::vector<std::int32_t> place(steps.size(), -1);
        const std::size_t begin = cliques_.size();
        std::vector<std::vector<Factor>> factors(steps.size());
        for (const Factor& factor : parts.factors) {
            const std::int32_t one = step_of[index(factor.first)];
            factors[home(factor.second < 0 ? one : std::min(one, step_of[index(factor.second)]))].push_back(factor);
        }
        for (std::size_t s = steps.size(); s-- > 0;) {
            if (steps[s].joined != s) continue;
            place[s] = static_cast<std::int32_t>(cliques_.size() - begin);
            Clique one;
            one.nodes = narrow(nodes_.size());
            one.n_separator = static_cast<std::uint16_t>(steps[s].separator.size());
            one.n_nodes = static_cast<std::uint16_t>(steps[s].nodes.size());
            const std::vector<std::int32_t>& apart = steps[s].separator;
            nodes_.insert(nodes_.end(), apart.begin(), apart.end());
            for (const std::int32_t v : steps[s].nodes)
                if (std::find(apart.begin(), apart.end(), v) == apart.end()) nodes_.push_back(v);
            check_codes(std::max<std::size_t>(one.n_separator, one.n_nodes - one.n_separator));
            one.factors = narrow(factors_.size());
            one.n_factors = narrow(factors[s].size());
            factors_.insert(factors_.end(), factors[s].begin(), factors[s].end());
            if (steps[s].parent >= 0) {
                one.parent = place[home(steps[s].parent)];
                Clique& above = cliques_[begin + index(one.parent)];
                one.next_sibling = above.first_child;
                above.first_child = place[s];
            }
            cliques_.push_back(one);
        }
    }
    static std::size_t index(std::int32_t number) { return static_cast<std::size_t>(number); }
    static std::uint32_t narrow(std::size_t number) {
        if (number > std::numeric_limits<std::uint32_t>::max())
            throw std::length_error("the cliques of all examples are too many");
        return static_cast<std::uint32_t>(number);
    }
    void check_codes(std::size_t n_nodes) const {
        std::uint64_t most = 1;
        for (std::size_t j = 0; j < n_nodes; ++j)
            if ((most *= n_labels_) > std::numeric_limits<std::uint32_t>::max())
                throw std::length_error("a clique has more labellings than there are numbers for");
    }

    std::uint32_t n_labels_;
    std::vector<std::size_t> first_;
    std::vector<Clique> cliques_;
    std::vector<std::int32_t> nodes_;
    std::vector<Factor> factors_;
};

}  // namespace dualfield
