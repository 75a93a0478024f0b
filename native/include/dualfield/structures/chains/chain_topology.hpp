// The state graph of a chain of any order.
//
// A chain of order k scores windows of k + 1 neighbouring labels, its cliques. A dynamic programme walks over states:
// the last k labels. A clique (a, m, b), with m the k - 1 labels in the middle, leads from state (a, m) to state (m,
// b). All cliques with the same middle m form a *group*: a dense block from the states (., m) to the states (m, .). So
// one step of the programme is, whatever the order, a product with a block-diagonal matrix; order 1 has one group, all
// labels to all labels. Only states that occur in a listed clique exist. Before the first node the label is -1: (-1, a,
// b) is the window at the second node of an order-2 chain, and (-1, ..., -1, a) is the state after the first node.
//
// Rows over states are padded: the out-states of a group start at a multiple of the vector length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dualfield {

class ChainTopology {
  public:
    struct Group {
        std::uint32_t first_in;  // into in_slots
        std::uint32_t n_in, in_width;
        std::uint32_t first_out;  // slot of the first out-state
        std::uint32_t n_out, out_width;
        std::size_t forward_block;   // offset of [n_in][out_width] in a forward table
        std::size_t backward_block;  // offset of [n_out][in_width] in a backward table
    };

    struct Clique {
        std::uint32_t from, to;      // slots
        std::size_t forward_entry;   // its place in a forward table
        std::size_t backward_entry;  // its place in a backward table
        bool allowed;
    };

    struct Range {
        std::uint32_t begin, end;
    };

    // Where a state stands in the group that it enters, and in the group that it leaves by.
    struct State {
        std::int32_t label = -1;      // its last label; -1 for padding
        std::int32_t group_out = -1;  // the group that writes it, or -1
        std::int32_t group_in = -1;   // the group that reads it, or -1
        std::uint32_t index_in = 0;   // its row in that group
    };

    // cliques: [n][order + 1] label windows, -1 before the first node, in lexicographic order, each once; allowed: [n].
    // Throws std::invalid_argument where they are not.
    ChainTopology(std::size_t n_labels, std::size_t order, std::span<const std::int32_t> cliques,
                  std::span<const std::uint8_t> allowed);

    std::size_t n_labels() const { return n_labels_; }
    std::size_t order() const { return order_; }
    std::size_t n_cliques() const { return cliques_.size(); }
    std::size_t width() const { return states_.size(); }  // length of a padded row over states
    std::size_t forward_size() const { return forward_size_; }
    std::size_t backward_size() const { return backward_size_; }
    std::size_t widest_in() const { return widest_in_; }
    bool is_plain() const { return is_plain_; }  // order 1: slots are labels
    bool has_forbidden() const { return has_forbidden_; }

    std::span<const Group> groups() const { return groups_; }
    std::span<const std::uint32_t> in_slots() const { return in_slots_; }
    std::span<const State> states() const { return states_; }
    std::span<const Range> unwritten() const { return unwritten_; }  // slots that no group writes
    std::span<const Clique> cliques() const { return cliques_; }
    std::uint32_t start_slot(std::size_t label) const { return start_slots_[label]; }
    // Slots of all states by their last label, then the one before it, and so on: the order in which ties are broken.
    std::span<const std::uint32_t> by_last_label() const { return by_last_label_; }

    // The clique by which `label` follows the state in `slot`, or -1 if none is listed.
    std::int64_t successor(std::uint32_t slot, std::int32_t label) const;

  private:
    struct Keys;
    void assign_slots(const Keys& keys);
    void link_cliques(std::span<const std::uint8_t> allowed);

    std::size_t n_labels_, order_;
    std::size_t forward_size_ = 0, backward_size_ = 0, widest_in_ = 0;
    bool is_plain_ = false, has_forbidden_ = false;
    std::vector<Group> groups_;
    std::vector<std::uint32_t> in_slots_;
    std::vector<State> states_;
    std::vector<Range> unwritten_;
    std::vector<Clique> cliques_;
    std::vector<std::uint32_t> start_slots_, by_last_label_;
    std::vector<std::int64_t> clique_at_;  // by forward entry
};

}  // namespace dualfield
