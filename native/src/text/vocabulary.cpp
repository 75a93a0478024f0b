#include "dualfield/text/vocabulary.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <stdexcept>
#include <string>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace dualfield {

namespace {

constexpr std::size_t first_table = 1024;
constexpr std::uint64_t upper_half = 0xffffffff00000000u;
constexpr std::size_t huge_page = std::size_t{1} << 21;
constexpr std::align_val_t table_alignment{huge_page};

// The length of the well-formed sequence that starts at `at`, or 0.
std::size_t utf8_sequence(std::string_view bytes, std::size_t at) noexcept {
    const auto byte = [bytes](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const unsigned lead = byte(at);
    if (lead < 0x80) return 1;
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || at + length > bytes.size()) return 0;
    // The second byte's range is narrower after some leads: that is where overlong forms, surrogates and too large
    // code points would start.
    const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (byte(at + 1) < low || byte(at + 1) > high) return 0;
    for (std::size_t i = 2; i < length; ++i)
        if ((byte(at + i) & 0xc0) != 0x80) return 0;
    return length;
}

}  // namespace

void* allocate_table(std::size_t n_bytes) {
    if (n_bytes < huge_page) return ::operator new(n_bytes);
    void* const memory = ::operator new(n_bytes, table_alignment);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    madvise(memory, n_bytes, MADV_HUGEPAGE);  // a wish: nothing is lost if it is refused
#endif
    return memory;
}

void free_table(void* memory, std::size_t n_bytes) noexcept {
    if (n_bytes < huge_page) return ::operator delete(memory);
    ::operator delete(memory, table_alignment);
}

bool is_utf8(std::string_view bytes) noexcept {
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t length = utf8_sequence(bytes, at);
        if (length == 0) return false;
        at += length;
    }
    return true;
}

Vocabulary::Vocabulary(std::int32_t limit) : offsets_{0}, limit_(limit) {
    resize_table(first_table);
}

// Doubling sends slot i to i or i + n, give or take the probing: both streams are written in order.
void Vocabulary::resize_table(std::size_t n_slots) {
    Table next(n_slots);
    const std::size_t mask = n_slots - 1;
    for (const Slot& slot : slots_) {
        if (slot.column == unknown) continue;
        std::size_t at = slot.hash & mask;
        while (next[at].column != unknown) at = (at + 1) & mask;
        next[at] = slot;
    }
    slots_.swap(next);
    mask_ = mask;
}

std::int32_t Vocabulary::append(std::string_view text, std::uint64_t hash, std::size_t at) {
    const std::int32_t column = size();
    if (column >= limit_)
        throw std::length_error("A vocabulary holds at most " + std::to_string(limit_) +
                                " attributes; there are more distinct ones.");
    if (text.size() > std::numeric_limits<std::uint32_t>::max())
        throw std::length_error("An attribute must be shorter than 4 GiB.");
    if ((static_cast<std::size_t>(column) + 1) * 2 > slots_.size()) {
        resize_table(slots_.size() * 2);
        at = locate(text, hash);
    }
    // All that can fail comes before the first change of state.
    if (offsets_.size() == offsets_.capacity()) offsets_.reserve(offsets_.size() * 2);
    const auto start = static_cast<std::int64_t>(arena_.size());
    arena_.insert(arena_.end(), text.begin(), text.end());
    offsets_.push_back(static_cast<std::int64_t>(arena_.size()));
    slots_[at] = {hash, start, static_cast<std::uint32_t>(text.size()), column};
    return column;
}

Vocabulary Vocabulary::from_buffers(std::span<const char> arena, std::span<const std::int64_t> offsets) {
    const auto refuse = [](const std::string& what) { throw std::invalid_argument(what); };
    if (offsets.empty() || offsets.front() != 0) refuse("offsets must start with 0.");
    for (std::size_t i = 1; i < offsets.size(); ++i)
        if (offsets[i] < offsets[i - 1]) refuse("offsets must not fall; offsets[" + std::to_string(i) + "] does.");
    if (offsets.back() != static_cast<std::int64_t>(arena.size()))
        refuse("offsets must end with the size of the arena, " + std::to_string(arena.size()) + ". Got " +
               std::to_string(offsets.back()) + " instead.");
    Vocabulary result;
    const std::size_t count = offsets.size() - 1;
    if (count > static_cast<std::size_t>(most_columns)) refuse("offsets name more than 2^31 - 1 attributes.");
    result.resize_table(std::max(first_table, std::bit_ceil(2 * count)));
    result.arena_.reserve(arena.size());
    result.offsets_.reserve(offsets.size());
    for (std::size_t i = 0; i < count; ++i) {
        const std::string_view text(arena.data() + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
        if (!is_utf8(text)) refuse("attribute " + std::to_string(i) + " of the arena is not valid UTF-8.");
        const std::int32_t column = result.insert(text);
        if (static_cast<std::size_t>(column) != i)
            refuse("attributes must be distinct; " + std::to_string(i) + " repeats " + std::to_string(column) + ".");
    }
    return result;
}

std::size_t VocabularyView::n_slots(std::size_t n_columns) noexcept {
    return std::bit_ceil(std::max<std::size_t>(2 * n_columns, 2));
}

std::vector<std::uint64_t> VocabularyView::make_slots(std::span<const char> arena,
                                                      std::span<const std::int64_t> offsets) {
    const std::size_t count = offsets.size() - 1;
    std::vector<std::uint64_t> slots(n_slots(count), 0);
    for (std::size_t i = 0; i < count; ++i) {
        const std::string_view text(arena.data() + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
        const std::uint64_t hash = hash_text(text);
        std::size_t at = hash & (slots.size() - 1);
        while (slots[at] != 0) at = (at + 1) & (slots.size() - 1);
        slots[at] = (hash & upper_half) | (i + 1);
    }
    return slots;
}

VocabularyView::VocabularyView(std::span<const char> arena, std::span<const std::int64_t> offsets,
                               std::span<const std::uint64_t> slots)
    : arena_(arena), offsets_(offsets), slots_(slots) {
    if constexpr (std::endian::native != std::endian::little)
        throw std::invalid_argument("it is little-endian; this machine is not.");
    if (offsets.empty() || offsets.size() - 1 > static_cast<std::size_t>(Vocabulary::most_columns))
        throw std::invalid_argument("a vocabulary has at most 2^31 - 1 attributes.");
    if (slots.size() != n_slots(offsets.size() - 1))
        throw std::invalid_argument("there must be " + std::to_string(n_slots(offsets.size() - 1)) + " slots. Got " +
                                    std::to_string(slots.size()) + " instead.");
}

std::string_view VocabularyView::attribute(std::int32_t column) const {
    const std::int64_t start = offsets_[static_cast<std::size_t>(column)];
    const std::int64_t stop = offsets_[static_cast<std::size_t>(column) + 1];
    if (start < 0 || stop < start || stop > static_cast<std::int64_t>(arena_.size()))
        throw std::invalid_argument("attribute " + std::to_string(column) + " lies outside of the arena.");
    return {arena_.data() + start, static_cast<std::size_t>(stop - start)};
}

std::int32_t VocabularyView::find(std::string_view text) const {
    const std::uint64_t hash = hash_text(text);
    std::size_t at = hash & (slots_.size() - 1);
    for (std::size_t probes = 0; probes < slots_.size(); ++probes, at = (at + 1) & (slots_.size() - 1)) {
        const std::uint64_t slot = slots_[at];
        if (slot == 0) return Vocabulary::unknown;
        if (((slot ^ hash) & upper_half) != 0) continue;
        const std::uint64_t column = (slot & ~upper_half) - 1;  // 0 - 1 is larger than any column
        if (column >= offsets_.size() - 1) throw std::invalid_argument("a slot has a column that does not exist.");
        if (attribute(static_cast<std::int32_t>(column)) == text) return static_cast<std::int32_t>(column);
    }
    throw std::invalid_argument("no slot is free.");
}

}  // namespace dualfield
