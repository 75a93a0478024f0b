// Blocks of chains that lie in files, as arrays: see data/compiled/corpus.py for their layout.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dualfield/scores/linear_map.hpp"
#include "dualfield/streaming/block_source.hpp"
#include "dualfield/structures/chains/chain.hpp"

namespace dualfield {

// What is the same for all blocks; it must outlive them.
struct ChainFormat {
    const ChainTopology* topology = nullptr;
    ChainStructure::Options options;
    const LinearMap* node = nullptr;
    const LinearMap* pair = nullptr;        // null: no features of label pairs
    const double* shared_mask = nullptr;    // [n_shared]
    const double* label_factors = nullptr;  // [K]: an example counts as the mean of those of its labels; null: as 1
    double C = 1.0;
    const double* cost = nullptr;  // [K][K], may be null
    double temperature = 1.0;
};

// Arrays of a block, in this order. Starts of rows count from the beginning of the file's arrays, not of the block.
enum class BlockArray : std::size_t { offsets, indptr, codes, indices, values, pair_indptr, pair_indices };
inline constexpr std::size_t kBlockArrays = 7;

struct ByteRange {
    std::uint64_t begin = 0, bytes = 0;
};
struct BlockPlace {
    std::size_t file = 0;
    std::array<ByteRange, kBlockArrays> arrays;  // without bytes: there is none
};

class CorpusBlocks final : public BlockSource {
  public:
    CorpusBlocks(const ChainFormat& format, std::vector<std::string> files, std::vector<BlockPlace> places);
    CorpusBlocks(const CorpusBlocks&) = delete;
    CorpusBlocks& operator=(const CorpusBlocks&) = delete;
    ~CorpusBlocks() override;

    std::size_t n_blocks() const override { return places_.size(); }
    std::size_t size() const override;
    std::unique_ptr<LoadedBlock> load(std::size_t block) const override;

  private:
    const ChainFormat format_;
    std::vector<std::string> files_;
    std::vector<int> open_;
    std::vector<BlockPlace> places_;
};

}  // namespace dualfield
