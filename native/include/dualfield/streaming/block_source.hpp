// Examples that are not all in memory: blocks of them, and bytes that a solver keeps for each.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "dualfield/objectives/problem.hpp"
#include "dualfield/solvers/solver_state.hpp"

namespace dualfield {

// Reading or writing failed; `code` is the errno.
class StorageError : public std::runtime_error {
  public:
    StorageError(int errno_code, const std::string& what) : std::runtime_error(what), code(errno_code) {}
    int code;
};
// What was read is not what was written.
class DamagedBlock : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A block in memory, with everything that its problem views.
class LoadedBlock {
  public:
    virtual ~LoadedBlock() = default;
    virtual const Problem& problem() const = 0;
    virtual std::size_t bytes() const = 0;  // of what it views
};

// All blocks have the same labels, weights w, cost and temperature. Calls from several threads at a time are allowed.
class BlockSource {
  public:
    virtual ~BlockSource() = default;
    virtual std::size_t n_blocks() const = 0;
    virtual std::unique_ptr<LoadedBlock> load(std::size_t block) const = 0;
    virtual std::size_t size() const = 0;  // of w
};

// Bytes of a solver for each block. Two threads may be at work for different blocks.
class StateStore {
  public:
    virtual ~StateStore() = default;
    virtual bool contains(std::size_t block) const = 0;
    virtual std::size_t bytes(std::size_t block) const = 0;
    virtual void read(std::size_t block, std::span<std::byte> out) const = 0;
    virtual void write(std::size_t block, std::span<const std::byte> state) = 0;
    // From now on what is there now stays, whatever is written, until this is called again: where it lies and its
    // digests, [n_blocks] each, to be given to `restore`.
    virtual std::vector<std::uint64_t> keep() = 0;
    virtual void restore(const std::vector<std::uint64_t>& kept) = 0;
    // Says before anything is written whether so many bytes will fit; throws StorageError.
    virtual void require(std::size_t bytes) const = 0;
};

}  // namespace dualfield
