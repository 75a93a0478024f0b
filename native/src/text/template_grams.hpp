// The values and grams of what is being read, numbered in order of first appearance.
//
// A *series* gives a number to each place of a sentence: what a macro makes of the token there, or what two other
// series say there together, the second perhaps some places further on. So the line %x[-1,0]|%x[0,0] asks the series of
// pairs of neighbouring values, one place back, and %x[0,0]|%x[1,0] asks the same series right here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dualfield/text/templates.hpp"
#include "dualfield/text/vocabulary.hpp"
#include "text_buffer.hpp"

namespace dualfield {

// Numbers pairs of numbers. The pair itself is compared: a hash only says where to look.
class PairTable {
  public:
    PairTable();

    std::int32_t size() const noexcept { return static_cast<std::int32_t>(pairs_.size()); }
    std::int32_t left(std::int32_t id) const noexcept {
        return static_cast<std::int32_t>(pairs_[static_cast<std::size_t>(id)] >> 32);
    }
    std::int32_t right(std::int32_t id) const noexcept {
        return static_cast<std::int32_t>(pairs_[static_cast<std::size_t>(id)] & 0xffffffffu);
    }

    void prefetch(std::int32_t left, std::int32_t right) const noexcept {
        prefetch_line(&slots_[place(joined(left, right))]);
    }
    std::int32_t insert(std::int32_t left, std::int32_t right) {
        const std::uint64_t pair = joined(left, right);
        for (std::size_t at = place(pair);; at = (at + 1) & mask_) {
            const Slot& slot = slots_[at];
            if (slot.id >= 0 && slot.pair == pair) return slot.id;
            if (slot.id < 0) return append(pair, at);
        }
    }

  private:
    struct Slot {
        std::uint64_t pair = 0;
        std::int32_t id = -1;  // -1: free
    };

    static std::uint64_t joined(std::int32_t left, std::int32_t right) noexcept {
        return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
    }
    std::size_t place(std::uint64_t pair) const noexcept {
        constexpr std::uint64_t seed = 0xa54ff53a5f1d36f1u, factor = 0x9e3779b97f4a7c15u;
        return static_cast<std::size_t>(multiply_fold(pair ^ seed, factor)) & mask_;
    }
    std::int32_t append(std::uint64_t pair, std::size_t at);

    std::vector<Slot, TableAllocator<Slot>> slots_;  // a power of two, at most half of them taken
    std::size_t mask_;
    std::vector<std::uint64_t> pairs_;  // [size()]
};

// What a macro makes of the values of a column.
class DerivedValues {
  public:
    DerivedValues(const Derivation& derivation, std::size_t column) : derivation_(derivation), column_(column) {}

    const Derivation& derivation() const noexcept { return derivation_; }
    std::size_t column() const noexcept { return column_; }  // among those that the template reads
    // %x: the numbers are those of the column's own values.
    bool is_plain() const noexcept { return derivation_.kind == Derivation::Kind::value && !derivation_.lowered; }

    std::int32_t of_value(std::int32_t id, const Vocabulary& values, const Characters& characters) {
        if (static_cast<std::size_t>(id) >= known_.size()) known_.resize(static_cast<std::size_t>(values.size()), -1);
        std::int32_t& known = known_[static_cast<std::size_t>(id)];
        if (known < 0) known = find(values.attribute(id), characters);
        return known;
    }
    // `place` as in derive_outside.
    std::int32_t of_outside(std::ptrdiff_t place, TemplateSyntax syntax, Vocabulary& values,
                            const Characters& characters);

    const Vocabulary& texts(const Vocabulary& values) const noexcept { return is_plain() ? values : texts_; }
    std::size_t size() const noexcept { return static_cast<std::size_t>(texts_.size()); }
    void clear();

  private:
    std::int32_t find(std::string_view value, const Characters& characters);

    Derivation derivation_;
    std::size_t column_;
    Vocabulary texts_;
    std::vector<std::int32_t> known_;                        // [values], -1 where not yet found
    std::vector<std::int32_t> known_before_, known_behind_;  // [distance - 1]
    std::string scratch_;
};

// All series that the lines of a template ask, each once.
class SeriesSet {
  public:
    // Where a line finds its numbers: token t asks series `series` at t + shift.
    struct Place {
        std::size_t series;
        std::int32_t shift;
        std::int32_t lowest, highest;  // offsets of the macros that are not absolute; 0 if there are none
        std::int32_t shortest = 0;     // a shorter sentence lacks a token that an absolute offset names
        bool always_outside = false;   // an absolute offset of 0 names none
    };

    SeriesSet(const Template& form, const Characters& characters);

    // All lines are added before the first sentence.
    Place add(const std::vector<Macro>& macros);

    std::span<const std::int32_t> columns() const noexcept { return columns_; }
    Vocabulary& values(std::size_t which) noexcept { return values_[which]; }

    void read(const std::int32_t* ids, std::size_t length);

    // The numbers of the sentence, from place first() on; all places are there where a line may ask.
    std::span<const std::int32_t> numbers(std::size_t series) const noexcept { return series_[series].numbers; }
    std::ptrdiff_t first(std::size_t series) const noexcept { return series_[series].begin; }
    std::int32_t size(std::size_t series) const noexcept;
    // Appends what a line composes of its fixed pieces and of gram `id`, which pieces.size() - 1 macros made.
    void spell(std::size_t series, std::int32_t id, std::span<const Piece> pieces, TextBuffer& buffer) const;

    std::size_t n_keys() const noexcept;
    void clear();

  private:
    struct Series {
        enum class Kind { constant, relative, absolute, joint } kind;
        std::size_t derived = 0;           // which of derived_, for one macro
        std::int32_t absolute_offset = 0;  // of one macro, if absolute
        std::size_t left = 0, right = 0;   // joint: two series,
        std::int32_t ahead = 0;            // the right one asked so many places further on
        // Places [begin, length + end) of a sentence have numbers.
        std::ptrdiff_t begin = 0, end = 0;
        PairTable pairs;
        std::vector<std::int32_t> ids;
        std::span<const std::int32_t> numbers;  // ids, or the caller's
        const Vocabulary* texts = nullptr;      // what the numbers stand for, for one macro
    };

    std::size_t add_macro(const Macro& macro);
    std::size_t add_joint(std::size_t left, std::size_t right, std::int32_t ahead);
    void require(std::size_t series, std::ptrdiff_t begin, std::ptrdiff_t end);
    void read_macro(Series& series, const std::int32_t* ids, std::ptrdiff_t length);
    void read_joint(Series& series, std::size_t count);
    std::int32_t derived_at(DerivedValues& derived, const std::int32_t* ids, std::ptrdiff_t place,
                            std::ptrdiff_t length);

    const Template& form_;
    const Characters characters_;
    std::vector<std::int32_t> columns_;
    std::vector<Vocabulary> values_;  // [columns_]
    std::vector<DerivedValues> derived_;
    std::vector<Series> series_;  // a joint one behind its parts
};

}  // namespace dualfield
