#include "dualfield/structures/chains/chain_topology.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "dualfield/core/layout.hpp"
#include "dualfield/core/sizes.hpp"

namespace dualfield {

// A tuple of labels as one number: digits label + 1 in base n_labels + 1, oldest label first, so that order is
// lexicographic.
struct ChainTopology::Keys {
    std::uint64_t base, middle_span;      // middle_span = base^(order - 1)
    std::vector<std::uint64_t> from, to;  // of each clique
    std::vector<std::uint64_t> states;    // distinct, sorted
    std::vector<std::uint8_t> is_from, is_to;

    std::size_t find(std::uint64_t state) const {
        return static_cast<std::size_t>(std::lower_bound(states.begin(), states.end(), state) - states.begin());
    }
    std::uint64_t reversed(std::uint64_t state) const {
        std::uint64_t result = 0;
        for (std::uint64_t span = middle_span; span > 0; span /= base, state /= base)
            result = result * base + state % base;
        return result;
    }
    std::uint64_t middle_as_out(std::uint64_t state) const { return state / base; }
    std::uint64_t middle_as_in(std::uint64_t state) const { return state % middle_span; }
};

ChainTopology::ChainTopology(std::size_t n_labels, std::size_t order, std::span<const std::int32_t> cliques,
                             std::span<const std::uint8_t> allowed)
    : n_labels_(n_labels), order_(order) {
    if (n_labels == 0 || order == 0) throw std::invalid_argument("a chain needs at least one label and order 1");
    // Labels are 32-bit codes, and so are the numbers of states, of which there are three for each clique at most.
    constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
    if (n_labels >= kMost || allowed.size() >= kMost / 4) throw std::invalid_argument("too many labels or cliques");
    const std::size_t size = order + 1;
    if (cliques.size() != checked_product(allowed.size(), size))
        throw std::invalid_argument("one flag is needed for each clique");

    Keys keys;
    keys.base = n_labels + 1;
    keys.middle_span = 1;
    for (std::uint64_t power = 1, i = 0; i < size; ++i) {
        if (power > std::numeric_limits<std::uint64_t>::max() / keys.base)
            throw std::invalid_argument("too many labels for this order: a window of labels does not fit 64 bits");
        power *= keys.base;
        if (i + 2 == order) keys.middle_span = power;
    }
    std::uint64_t previous = 0;
    for (std::size_t c = 0; c < allowed.size(); ++c) {
        const auto window = cliques.subspan(c * size, size);
        std::uint64_t whole = 0, from = 0, to = 0;
        for (std::size_t i = 0; i < size; ++i) {
            const std::int32_t label = window[i];
            // -1 stands for "before the first node": only at the front, and never in the last two places.
            const bool pad = label == -1 && i + 2 < size && (i == 0 || window[i - 1] == -1);
            if (!pad && (label < 0 || static_cast<std::size_t>(label) >= n_labels))
                throw std::invalid_argument("clique " + std::to_string(c) + " has a label out of range");
            const std::uint64_t digit = static_cast<std::uint64_t>(label + 1);
            whole = whole * keys.base + digit;
            if (i < order) from = from * keys.base + digit;
            if (i > 0) to = to * keys.base + digit;
        }
        if (c > 0 && whole <= previous) throw std::invalid_argument("cliques must be sorted, each listed once");
        previous = whole;
        keys.from.push_back(from);
        keys.to.push_back(to);
    }
    keys.states = keys.from;
    keys.states.insert(keys.states.end(), keys.to.begin(), keys.to.end());
    for (std::uint64_t label = 1; label <= n_labels; ++label) keys.states.push_back(label);  // (-1, ..., -1, label)
    std::sort(keys.states.begin(), keys.states.end());
    keys.states.erase(std::unique(keys.states.begin(), keys.states.end()), keys.states.end());
    keys.is_from.assign(keys.states.size(), 0);
    keys.is_to.assign(keys.states.size(), 0);
    for (const std::uint64_t key : keys.from) keys.is_from[keys.find(key)] = 1;
    for (const std::uint64_t key : keys.to) keys.is_to[keys.find(key)] = 1;

    assign_slots(keys);
    link_cliques(allowed);
}

void ChainTopology::assign_slots(const Keys& keys) {
    std::vector<std::uint32_t> slot_of(keys.states.size());
    const auto take_slot = [&](std::size_t state, std::int32_t group) {
        slot_of[state] = static_cast<std::uint32_t>(states_.size());
        State entry;
        entry.label = static_cast<std::int32_t>(keys.states[state] % keys.base) - 1;
        entry.group_out = group;
        states_.push_back(entry);
    };
    // Out-states of one group are neighbours in lexicographic order.
    std::vector<std::uint64_t> middles;
    for (std::size_t s = 0; s < keys.states.size(); ++s) {
        if (!keys.is_to[s]) continue;
        const std::uint64_t middle = keys.middle_as_out(keys.states[s]);
        if (middles.empty() || middles.back() != middle) {
            states_.resize(padded(states_.size()));
            middles.push_back(middle);
            groups_.push_back({.first_in = 0,
                               .n_in = 0,
                               .in_width = 0,
                               .first_out = static_cast<std::uint32_t>(states_.size()),
                               .n_out = 0,
                               .out_width = 0,
                               .forward_block = 0,
                               .backward_block = 0});
        }
        take_slot(s, static_cast<std::int32_t>(groups_.size()) - 1);
        ++groups_.back().n_out;
    }
    states_.resize(padded(states_.size()));
    const auto n_written = static_cast<std::uint32_t>(states_.size());
    for (std::size_t s = 0; s < keys.states.size(); ++s)
        if (!keys.is_to[s]) take_slot(s, -1);
    states_.resize(padded(states_.size()));
    if (states_.size() > n_written) unwritten_.push_back({n_written, static_cast<std::uint32_t>(states_.size())});

    // In-states of a group: those that end in its middle, by their oldest label.
    std::vector<std::vector<std::size_t>> in_states(groups_.size());
    for (std::size_t s = 0; s < keys.states.size(); ++s) {
        if (!keys.is_from[s]) continue;
        const auto at = std::lower_bound(middles.begin(), middles.end(), keys.middle_as_in(keys.states[s]));
        in_states[static_cast<std::size_t>(at - middles.begin())].push_back(s);
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        Group& group = groups_[g];
        group.out_width = static_cast<std::uint32_t>(padded(group.n_out));
        group.first_in = static_cast<std::uint32_t>(in_slots_.size());
        group.n_in = static_cast<std::uint32_t>(in_states[g].size());
        group.in_width = static_cast<std::uint32_t>(padded(group.n_in));
        group.forward_block = forward_size_;
        group.backward_block = backward_size_;
        forward_size_ += checked_product(group.n_in, group.out_width);
        backward_size_ += checked_product(group.n_out, group.in_width);
        widest_in_ = std::max<std::size_t>(widest_in_, group.in_width);
        for (std::size_t i = 0; i < in_states[g].size(); ++i) {
            State& state = states_[slot_of[in_states[g][i]]];
            state.group_in = static_cast<std::int32_t>(g);
            state.index_in = static_cast<std::uint32_t>(i);
            in_slots_.push_back(slot_of[in_states[g][i]]);
        }
    }
    for (std::uint64_t label = 1; label <= n_labels_; ++label) start_slots_.push_back(slot_of[keys.find(label)]);
    std::vector<std::size_t> order(keys.states.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return keys.reversed(keys.states[a]) < keys.reversed(keys.states[b]);
    });
    for (const std::size_t state : order) by_last_label_.push_back(slot_of[state]);
    is_plain_ = order_ == 1 && groups_.size() == 1 && groups_[0].n_in == n_labels_ && groups_[0].n_out == n_labels_;

    cliques_.reserve(keys.from.size());
    for (std::size_t c = 0; c < keys.from.size(); ++c)
        cliques_.push_back({.from = slot_of[keys.find(keys.from[c])],
                            .to = slot_of[keys.find(keys.to[c])],
                            .forward_entry = 0,
                            .backward_entry = 0,
                            .allowed = true});
}

void ChainTopology::link_cliques(std::span<const std::uint8_t> allowed) {
    clique_at_.assign(forward_size_, -1);
    std::size_t n_open = 0;
    for (std::size_t c = 0; c < cliques_.size(); ++c) {
        Clique& clique = cliques_[c];
        const State& from = states_[clique.from];
        const Group& group = groups_[static_cast<std::size_t>(from.group_in)];
        const std::size_t column = clique.to - group.first_out;
        clique.forward_entry = group.forward_block + std::size_t{from.index_in} * group.out_width + column;
        clique.backward_entry = group.backward_block + column * group.in_width + from.index_in;
        clique.allowed = allowed[c] != 0;
        clique_at_[clique.forward_entry] = static_cast<std::int64_t>(c);
        n_open += clique.allowed;
    }
    std::size_t n_pairs = 0;
    for (const Group& group : groups_) n_pairs += std::size_t{group.n_in} * group.n_out;
    // The start states make no difference: at the first node they are the only ones.
    has_forbidden_ = n_open < n_pairs || order_ > 1;
}

std::int64_t ChainTopology::successor(std::uint32_t slot, std::int32_t label) const {
    const State& state = states_[slot];
    if (state.group_in < 0) return -1;
    const Group& group = groups_[static_cast<std::size_t>(state.group_in)];
    const auto begin = states_.begin() + group.first_out;
    const auto end = begin + group.n_out;
    const auto at = std::lower_bound(begin, end, label, [](const State& s, std::int32_t l) { return s.label < l; });
    if (at == end || at->label != label) return -1;
    return clique_at_[group.forward_block + std::size_t{state.index_in} * group.out_width +
                      static_cast<std::size_t>(at - begin)];
}

}  // namespace dualfield
