// Attribute strings to columns: the i-th distinct string ever inserted is column i.
//
// Open addressing with linear probing at a load of at most one half. A slot keeps the whole 64-bit hash, so that a
// probe touches the string itself only when it is almost surely the right one; the bytes are then compared, so no
// collision is ever taken for a match. Strings lie one after another in a byte arena, in column order: arena and
// offsets are all that has to be saved. A file that is to be looked up in place has a compact table of slots besides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "dualfield/core/memory.hpp"

namespace dualfield {

// Both halves of the 128-bit product, folded into one word: for compilers without a 128-bit integer.
inline std::uint64_t multiply_fold_by_halves(std::uint64_t a, std::uint64_t b) noexcept {
    const std::uint64_t a_low = a & 0xffffffffu, a_high = a >> 32, b_low = b & 0xffffffffu, b_high = b >> 32;
    const std::uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
    const std::uint64_t cross = a_low * b_high + (middle & 0xffffffffu);
    return (a * b) ^ (a_high * b_high + (middle >> 32) + (cross >> 32));
}

inline std::uint64_t multiply_fold(std::uint64_t a, std::uint64_t b) noexcept {
#if defined(__SIZEOF_INT128__)
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
#else
    return multiply_fold_by_halves(a, b);
#endif
}

// Sixteen bytes per multiplication and a fixed seed: equal strings hash alike in every run, on all machines of a byte
// order. The tables in model files, which are little-endian, depend on it: it must not change.
inline std::uint64_t hash_text(std::string_view text) noexcept {
    constexpr std::uint64_t seed = 0x6a09e667f3bcc909u, first = 0xbb67ae8584caa73bu, second = 0x3c6ef372fe94f82bu;
    const auto word = [](const char* at) {
        std::uint64_t bits;
        std::memcpy(&bits, at, sizeof bits);
        return bits;
    };
    const auto half = [](const char* at) {
        std::uint32_t bits;
        std::memcpy(&bits, at, sizeof bits);
        return static_cast<std::uint64_t>(bits);
    };
    const char* at = text.data();
    std::size_t left = text.size();
    std::uint64_t state = seed + left * first;
    for (; left > 16; at += 16, left -= 16) state = multiply_fold(word(at) ^ state, word(at + 8) ^ second);
    std::uint64_t head = 0, tail = 0;
    if (left >= 8) {  // the two words overlap unless sixteen bytes are left; together they cover all of them
        head = word(at);
        tail = word(at + left - 8);
    } else if (left >= 4) {
        head = half(at);
        tail = half(at + left - 4);
    } else if (left > 0) {
        const auto byte = [at](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])); };
        head = byte(0) << 16 | byte(left / 2) << 8 | byte(left - 1);
    }
    return multiply_fold(head ^ state, tail ^ second ^ (state >> 32 | state << 32));
}

// Memory for a table read at random: on huge pages where the system has them, since most misses of a large table would
// otherwise be misses of the page translation too.
void* allocate_table(std::size_t n_bytes);
void free_table(void* memory, std::size_t n_bytes) noexcept;

template <class T>
struct TableAllocator {
    using value_type = T;
    TableAllocator() = default;
    template <class U>
    explicit TableAllocator(const TableAllocator<U>&) noexcept {}
    T* allocate(std::size_t n) { return static_cast<T*>(allocate_table(n * sizeof(T))); }
    void deallocate(T* memory, std::size_t n) noexcept { free_table(memory, n * sizeof(T)); }
    bool operator==(const TableAllocator&) const noexcept { return true; }
};

class Vocabulary {
  public:
    static constexpr std::int32_t unknown = -1;
    static constexpr std::int32_t most_columns = std::numeric_limits<std::int32_t>::max();

    // `limit` is the number of columns that may exist; insert throws std::length_error beyond it.
    explicit Vocabulary(std::int32_t limit = most_columns);

    // Columns are numbered as the strings lie in the buffers. Throws std::invalid_argument, naming what is wrong,
    // unless the offsets start at 0, never fall, end at the arena's size, and cut it into distinct valid UTF-8 strings.
    static Vocabulary from_buffers(std::span<const char> arena, std::span<const std::int64_t> offsets);

    std::int32_t size() const noexcept { return static_cast<std::int32_t>(offsets_.size() - 1); }
    std::span<const char> arena() const noexcept { return arena_; }
    std::span<const std::int64_t> offsets() const noexcept { return offsets_; }  // [size() + 1]

    // The string of a column in [0, size()); the view ends with the next insertion.
    std::string_view attribute(std::int32_t column) const noexcept {
        const auto start = offsets_[static_cast<std::size_t>(column)];
        const auto stop = offsets_[static_cast<std::size_t>(column) + 1];
        return {arena_.data() + start, static_cast<std::size_t>(stop - start)};
    }

    std::int32_t find(std::string_view text, std::uint64_t hash) const noexcept {
        return slots_[locate(text, hash)].column;
    }
    std::int32_t find(std::string_view text) const noexcept { return find(text, hash_text(text)); }

    std::int32_t insert(std::string_view text, std::uint64_t hash) {
        const std::size_t at = locate(text, hash);
        const std::int32_t column = slots_[at].column;
        return column != unknown ? column : append(text, hash, at);
    }
    std::int32_t insert(std::string_view text) { return insert(text, hash_text(text)); }

    // For callers that look up many strings: first the slot, some strings later the bytes it points to.
    void prefetch_slot(std::uint64_t hash) const noexcept { prefetch_line(&slots_[hash & mask_]); }
    void prefetch_bytes(std::uint64_t hash) const noexcept {
        prefetch_line(arena_.data() + slots_[hash & mask_].offset);
    }

    bool operator==(const Vocabulary& other) const noexcept {
        return arena_ == other.arena_ && offsets_ == other.offsets_;
    }

  private:
    struct Slot {
        std::uint64_t hash = 0;
        std::int64_t offset = 0;
        std::uint32_t length = 0;
        std::int32_t column = unknown;  // unknown: the slot is free
    };

    // For texts of the slot's length. No bytes may mean no address either, which memcmp must not see.
    bool same_bytes(const Slot& slot, std::string_view text) const noexcept {
        return text.empty() || std::memcmp(arena_.data() + slot.offset, text.data(), text.size()) == 0;
    }

    // The slot that holds the text, or the free slot where it belongs.
    std::size_t locate(std::string_view text, std::uint64_t hash) const noexcept {
        for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
            const Slot& slot = slots_[at];
            if (slot.column == unknown) return at;
            if (slot.hash == hash && slot.length == text.size() && same_bytes(slot, text)) return at;
        }
    }

    std::int32_t append(std::string_view text, std::uint64_t hash, std::size_t at);
    void resize_table(std::size_t n_slots);

    using Table = std::vector<Slot, TableAllocator<Slot>>;

    Table slots_;  // a power of two
    std::size_t mask_ = 0;
    std::vector<char> arena_;
    std::vector<std::int64_t> offsets_;
    std::int32_t limit_;
};

// The same map in arrays that others own and nobody vouches for, such as those of a mapped file. Nothing is read before
// it is needed, and every number read is checked before it is used: whatever the arrays hold, a lookup finds a column
// whose attribute is the text, or none, or throws std::invalid_argument.
//
// A slot is 0 if free; else its upper half is that of the hash and its lower half the column plus one.
class VocabularyView {
  public:
    // How many slots there are for so many columns: a power of two, at most half of them taken.
    static std::size_t n_slots(std::size_t n_columns) noexcept;
    // The slots of sound buffers.
    static std::vector<std::uint64_t> make_slots(std::span<const char> arena, std::span<const std::int64_t> offsets);

    // Throws std::invalid_argument unless the sizes fit each other.
    VocabularyView(std::span<const char> arena, std::span<const std::int64_t> offsets,
                   std::span<const std::uint64_t> slots);

    std::int32_t size() const noexcept { return static_cast<std::int32_t>(offsets_.size() - 1); }
    std::string_view attribute(std::int32_t column) const;  // column in [0, size())
    std::int32_t find(std::string_view text) const;

  private:
    std::span<const char> arena_;
    std::span<const std::int64_t> offsets_;
    std::span<const std::uint64_t> slots_;
};

// Whether the bytes are well-formed UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.
bool is_utf8(std::string_view bytes) noexcept;

}  // namespace dualfield
