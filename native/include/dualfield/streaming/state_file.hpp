// The state of a solver in a file, block by block.
//
// Where a state is to be kept, for a checkpoint, it lies in two places: what was kept stays where it is, and the block
// is written to the other place from then on. A digest of each block, held in memory, finds what was altered on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "dualfield/streaming/block_source.hpp"

namespace dualfield {

class StateFile final : public StateStore {
  public:
    // Without a name: a file in this folder that has none, so that it is gone when the process is, however that ends.
    // With a name: this file, which is made if it is not there, and stays.
    StateFile(std::size_t n_blocks, const std::string& folder, const std::string& name);
    StateFile(const StateFile&) = delete;
    StateFile& operator=(const StateFile&) = delete;
    ~StateFile() override;

    bool contains(std::size_t block) const override { return places_[block].bytes > 0; }
    std::size_t bytes(std::size_t block) const override { return static_cast<std::size_t>(places_[block].bytes); }
    void read(std::size_t block, std::span<std::byte> out) const override;
    void write(std::size_t block, std::span<const std::byte> state) override;
    std::vector<std::uint64_t> keep() override;
    void restore(const std::vector<std::uint64_t>& kept) override;
    void require(std::size_t bytes) const override;

  private:
    struct Place {
        std::uint64_t begin = 0, capacity = 0, bytes = 0, digest = 0;
    };
    Place room(std::uint64_t bytes);

    std::string path_;
    int file_ = -1;
    std::vector<Place> places_, kept_, spare_;  // now; as kept; where else there is room
    std::mutex guard_;                          // of end_
    std::uint64_t end_ = 0;
};

}  // namespace dualfield
