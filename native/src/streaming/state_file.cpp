#include "dualfield/streaming/state_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "file_access.hpp"

namespace dualfield {
namespace {

constexpr std::uint64_t kAlignment = 4096;
constexpr std::uint64_t kNumbers = 6;  // of a place and of the other one, as they are kept

std::uint64_t rounded(std::uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Not for those who want to deceive: for disks that forget. Four lanes, so that it is as fast as the disk.
std::uint64_t digest_of(std::span<const std::byte> bytes) {
    constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15u;
    std::uint64_t lanes[4] = {1, 2, 3, 4};
    const std::size_t whole = bytes.size() / 32 * 32;
    for (std::size_t at = 0; at < whole; at += 32) {
        std::uint64_t words[4];
        std::memcpy(words, bytes.data() + at, 32);
        for (std::size_t k = 0; k < 4; ++k) {
            lanes[k] = (lanes[k] ^ words[k]) * kFactor;
            lanes[k] ^= lanes[k] >> 29;
        }
    }
    std::uint64_t result = bytes.size();
    for (std::size_t at = whole; at < bytes.size(); ++at)
        result = (result ^ static_cast<std::uint64_t>(bytes[at])) * kFactor;
    for (const std::uint64_t lane : lanes) {
        result = (result ^ lane) * kFactor;
        result ^= result >> 32;
    }
    return result;
}

}  // namespace

StateFile::StateFile(std::size_t n_blocks, const std::string& folder, const std::string& name)
    : path_(name.empty() ? folder : name),
      file_(open_to_write(path_, !name.empty())),
      places_(n_blocks),
      kept_(n_blocks),
      spare_(n_blocks) {}

StateFile::~StateFile() {
    close_file(file_);
}

void StateFile::read(std::size_t block, std::span<std::byte> out) const {
    const Place& place = places_[block];
    if (place.bytes != out.size() || !read_range(file_, path_, place.begin, out) || digest_of(out) != place.digest)
        throw DamagedBlock(path_ + " is altered: the state of block " + std::to_string(block) +
                           " is not what was written.");
}

StateFile::Place StateFile::room(std::uint64_t bytes) {
    const std::lock_guard lock(guard_);
    // States that grow will grow again.
    const Place found{end_, rounded(bytes), 0, 0};
    end_ += found.capacity;
    return found;
}

void StateFile::write(std::size_t block, std::span<const std::byte> state) {
    Place& place = places_[block];
    const bool is_kept = kept_[block].bytes > 0 && kept_[block].begin == place.begin;
    if (is_kept) {
        place = spare_[block];
        spare_[block] = {};
    }
    if (place.capacity < state.size())
        place = room(place.capacity > 0 ? state.size() + state.size() / 4 : state.size());
    write_range(file_, path_, place.begin, state);
    place.bytes = state.size();
    place.digest = digest_of(state);
}

std::vector<std::uint64_t> StateFile::keep() {
    flush_file(file_, path_);
    std::vector<std::uint64_t> out;
    out.reserve(kNumbers * places_.size());
    for (std::size_t b = 0; b < places_.size(); ++b) {
        const Place& now = places_[b];
        // What was kept before is free again, unless it is the same.
        if (kept_[b].capacity > 0 && kept_[b].begin != now.begin) spare_[b] = kept_[b];
        kept_[b] = now;
        out.insert(out.end(), {now.begin, now.capacity, now.bytes, now.digest, spare_[b].begin, spare_[b].capacity});
    }
    return out;
}

void StateFile::restore(const std::vector<std::uint64_t>& kept) {
    if (kept.size() != kNumbers * places_.size()) throw StateError("places has another size");
    end_ = 0;
    const std::uint64_t size = file_size(file_, path_);
    for (std::size_t b = 0; b < places_.size(); ++b) {
        const std::uint64_t* numbers = kept.data() + kNumbers * b;
        places_[b] = {numbers[0], numbers[1], numbers[2], numbers[3]};
        if (places_[b].bytes > places_[b].capacity || places_[b].begin > size ||
            places_[b].bytes > size - places_[b].begin)
            throw StateError(path_ + " is not the file that belongs to it");
        spare_[b] = {numbers[4], numbers[5], 0, 0};
        end_ = std::max({end_, places_[b].begin + places_[b].capacity, spare_[b].begin + spare_[b].capacity});
    }
    end_ = rounded(std::max(end_, size));
    kept_ = places_;
}

void StateFile::require(std::size_t bytes) const {
    const std::uint64_t there = free_space(file_, path_), own = file_size(file_, path_);
    if (bytes > there + own)
        throw StorageError(ENOSPC, path_ + " has room for " + std::to_string((there + own) / 1000000) +
                                       " MB. The state of this fit takes " + std::to_string(bytes / 1000000 + 1) +
                                       " MB on disk.");
}

}  // namespace dualfield
