// Blocks of examples on their way through memory: read ahead, visited, written back.
//
// What a solver computes depends on the blocks and on its seed, never on how many of them are in memory: that only says
// how many stay there from one sweep to the next.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "../dual/state_precision.hpp"
#include "dualfield/objectives/objective.hpp"
#include "dualfield/solvers/streamed/streamed_dual.hpp"
#include "dualfield/streaming/block_source.hpp"

namespace dualfield {

// A block in memory, ready for visits: its problem, and the state that a solver keeps for it.
class VisitedBlock {
  public:
    VisitedBlock(std::size_t block, std::unique_ptr<LoadedBlock> loaded)
        : number(block), loaded_(std::move(loaded)), objective_(loaded_->problem(), 1) {}

    const Problem& problem() const { return loaded_->problem(); }
    Objective& objective() { return objective_; }
    std::size_t bytes() const;  // with the plan of its features, without the state

    const std::size_t number;
    std::vector<std::byte> state;  // empty: it has none yet
    bool is_changed = false;       // since it was read

  private:
    std::unique_ptr<LoadedBlock> loaded_;
    Objective objective_;
};

struct BlockSizes {
    std::size_t bytes = 0;  // in memory, without a state
    std::size_t n_examples = 0, n_nodes = 0, n_own = 0, n_shared = 0;
};

class BlockStream {
  public:
    using Blocks = std::span<VisitedBlock* const>;
    using StateBytes = std::function<std::size_t(const BlockSizes&)>;

    // Reads every block once.
    BlockStream(const BlockSource& source, StateStore& store, const StreamSettings& settings);
    ~BlockStream();
    // Decides which blocks stay in memory, given how large the state of a block is. Throws std::invalid_argument where
    // the memory is too little, and StorageError where the disk is.
    void plan(const StateBytes& state_bytes);

    const DataSums& sums() const { return sums_; }
    const BlockSizes& sizes(std::size_t block) const { return sizes_[block]; }

    std::size_t n_blocks() const { return source_.n_blocks(); }
    std::vector<std::size_t> every_block() const;
    std::size_t size() const { return source_.size(); }
    std::size_t n_examples() const { return n_examples_; }    // that have nodes
    std::size_t n_held() const { return n_held_; }            // blocks that stay in memory
    std::size_t least_bytes() const { return least_bytes_; }  // that would do

    // Visits blocks with their states in this order, some at a time; false ends it. Changed states are written back.
    void visit(std::span<const std::size_t> order, const std::function<bool(Blocks)>& visit);
    // Looks at all blocks, on several threads, in any order: `look` writes only what belongs to the block.
    void look(const std::function<void(VisitedBlock&)>& look);

    // Writes what is in memory only and keeps everything: for a checkpoint.
    std::vector<std::uint64_t> keep();
    void restore(const std::vector<std::uint64_t>& kept);

  private:
    class Pipeline;

    std::unique_ptr<VisitedBlock> open(std::size_t block) const;
    std::unique_ptr<VisitedBlock> load(std::size_t block, bool with_state) const;
    void survey();
    void write(VisitedBlock& block);
    void release_beyond_memory();

    const BlockSource& source_;
    StateStore& store_;
    const StreamSettings settings_;
    std::vector<BlockSizes> sizes_;
    std::vector<std::size_t> planned_;  // [n_blocks]: bytes in memory with the state
    DataSums sums_;
    std::vector<std::unique_ptr<VisitedBlock>> held_;  // [n_blocks], null: on disk
    std::vector<char> stays_;                          // [n_blocks]: whether it is to be held
    std::size_t n_examples_ = 0, n_held_ = 0, least_bytes_ = 0, depth_ = 2, n_lookers_ = 1, transient_ = 0;
};

}  // namespace dualfield
