#include <cstdint>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "check.hpp"
#include "dualfield/text/vocabulary.hpp"

using dualfield::hash_text;
using dualfield::is_utf8;
using dualfield::Vocabulary;
using dualfield::VocabularyView;

namespace {

// Strings of all lengths around the hash's boundaries, many differing in one byte only.
std::vector<std::string> similar_strings() {
    std::vector<std::string> strings;
    for (std::size_t length = 0; length <= 70; ++length) {
        strings.emplace_back(length, 'a');
        for (std::size_t i = 0; i < length; ++i) {
            strings.push_back(strings[strings.size() - i - 1]);
            strings.back()[i] = 'b';
        }
    }
    return strings;
}

Vocabulary from_parts(const std::string& arena, const std::vector<std::int64_t>& offsets) {
    return Vocabulary::from_buffers(arena, offsets);
}

}  // namespace

TEST(vocabulary_hash_tells_similar_strings_apart) {
    std::set<std::string> strings;
    std::set<std::uint64_t> hashes;
    for (const std::string& text : similar_strings()) {
        strings.insert(text);
        hashes.insert(hash_text(text));
    }
    CHECK(strings.size() == hashes.size());
    // Every one-byte and two-byte string.
    hashes.clear();
    for (int a = 0; a < 256; ++a) {
        hashes.insert(hash_text(std::string(1, static_cast<char>(a))));
        for (int b = 0; b < 256; ++b) hashes.insert(hash_text(std::string{static_cast<char>(a), static_cast<char>(b)}));
    }
    CHECK(hashes.size() == 256 + 256 * 256);
}

TEST(vocabulary_hash_spreads_over_small_tables) {
    // 2^14 numbered strings into 2^10 buckets: 16 each on average, and none far from it.
    std::vector<int> low(1024), high(1024);
    for (int i = 0; i < 1 << 14; ++i) {
        const std::uint64_t hash = hash_text("attribute=" + std::to_string(i));
        ++low[hash & 1023];
        ++high[hash >> 54];
    }
    for (int i = 0; i < 1024; ++i)
        CHECK(low[static_cast<std::size_t>(i)] < 48 && high[static_cast<std::size_t>(i)] < 48);
}

TEST(vocabulary_multiply_fold_is_the_whole_product) {
    // Halves of (2^64 - 1)^2 = 2^128 - 2^65 + 1: low 1, high 2^64 - 2.
    const std::uint64_t ones = ~std::uint64_t{0};
    CHECK(dualfield::multiply_fold(ones, ones) == (std::uint64_t{1} ^ (ones - 1)));
    CHECK(dualfield::multiply_fold(std::uint64_t{1} << 63, 6) == 3);  // 3 * 2^64
    CHECK(dualfield::multiply_fold(7, 9) == 63);
    CHECK(dualfield::multiply_fold(0, ones) == 0);
    std::uint64_t x = 1, y = 2;
    for (int i = 0; i < 1000; ++i) {
        CHECK(dualfield::multiply_fold(x, y) == dualfield::multiply_fold_by_halves(x, y));
        x = x * 6364136223846793005u + 1442695040888963407u;
        y = (y ^ x >> 7) * 2862933555777941757u + 3037000493u;
    }
}

TEST(vocabulary_agrees_with_the_standard_map) {
    Vocabulary vocabulary;
    std::unordered_map<std::string, std::int32_t> reference;
    std::uint64_t state = 7;
    for (int i = 0; i < 200000; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const std::string text = "w[" + std::to_string(state >> 60) + "]=" + std::to_string((state >> 33) % 40000);
        const auto [entry, added] = reference.try_emplace(text, static_cast<std::int32_t>(reference.size()));
        if (added) CHECK(vocabulary.find(text) == Vocabulary::unknown);
        CHECK(vocabulary.insert(text) == entry->second);
    }
    CHECK(vocabulary.size() == static_cast<std::int32_t>(reference.size()));
    for (const auto& [text, column] : reference) {
        CHECK(vocabulary.find(text) == column);
        CHECK(vocabulary.attribute(column) == text);
    }
    CHECK(vocabulary.find("w[0]=x") == Vocabulary::unknown);
}

TEST(vocabulary_compares_bytes_when_hashes_collide) {
    Vocabulary vocabulary;
    for (int i = 0; i < 3000; ++i) CHECK(vocabulary.insert(std::to_string(i), 42) == i);  // one hash for all
    for (int i = 0; i < 3000; ++i) CHECK(vocabulary.find(std::to_string(i), 42) == i);
    CHECK(vocabulary.find("3000", 42) == Vocabulary::unknown);
    CHECK(vocabulary.find("12", 43) == Vocabulary::unknown);
}

TEST(vocabulary_holds_empty_and_zero_bytes) {
    Vocabulary vocabulary;
    CHECK(vocabulary.find("") == Vocabulary::unknown);
    CHECK(vocabulary.insert("") == 0);
    CHECK(vocabulary.find({}) == 0);
    CHECK(vocabulary.insert(std::string("a\0b", 3)) == 1);
    CHECK(vocabulary.insert("a") == 2);
    CHECK(vocabulary.insert("") == 0);
    CHECK(vocabulary.attribute(1).size() == 3);
    CHECK(vocabulary.attribute(0).empty());
}

TEST(vocabulary_refuses_more_than_its_limit) {
    Vocabulary vocabulary(2);
    vocabulary.insert("a");
    vocabulary.insert("b");
    CHECK(vocabulary.insert("a") == 0);
    CHECK_THROWS(vocabulary.insert("c"), std::length_error);
    CHECK(vocabulary.size() == 2);
    CHECK(vocabulary.find("c") == Vocabulary::unknown);
}

TEST(vocabulary_survives_its_buffers) {
    Vocabulary vocabulary;
    for (const std::string& text : similar_strings()) vocabulary.insert(text);
    const Vocabulary restored = Vocabulary::from_buffers(vocabulary.arena(), vocabulary.offsets());
    CHECK(restored == vocabulary);
    for (std::int32_t column = 0; column < vocabulary.size(); ++column)
        CHECK(restored.find(vocabulary.attribute(column)) == column);
    CHECK(from_parts("", {0}).size() == 0);
    Vocabulary copy(restored);
    copy.insert("new");
    CHECK(!(copy == restored));
    CHECK(restored.find("new") == Vocabulary::unknown);
}

TEST(vocabulary_refuses_unsound_buffers) {
    CHECK(from_parts("abc", {0, 1, 3}).attribute(1) == "bc");
    CHECK_THROWS(from_parts("abc", {}), std::invalid_argument);
    CHECK_THROWS(from_parts("abc", {1, 3}), std::invalid_argument);
    CHECK_THROWS(from_parts("abc", {0, 2, 1, 3}), std::invalid_argument);
    CHECK_THROWS(from_parts("abc", {0, 2}), std::invalid_argument);
    CHECK_THROWS(from_parts("abc", {0, 9}), std::invalid_argument);
    CHECK_THROWS(from_parts("abc", {0, 9, 3}), std::invalid_argument);
    CHECK_THROWS(from_parts("aa", {0, 1, 2}), std::invalid_argument);
    CHECK_THROWS(from_parts("\xc3\xa9", {0, 1, 2}), std::invalid_argument);  // cuts a character in two
}

TEST(vocabulary_view_finds_what_was_inserted) {
    for (const std::size_t count : {0u, 1u, 2u, 3u, 1000u, 4097u}) {
        Vocabulary vocabulary;
        for (std::size_t i = 0; i < count; ++i) vocabulary.insert("w[0]=" + std::to_string(i * i));
        const std::vector<std::uint64_t> slots = VocabularyView::make_slots(vocabulary.arena(), vocabulary.offsets());
        CHECK(slots.size() >= 2 * count);
        const VocabularyView view(vocabulary.arena(), vocabulary.offsets(), slots);
        CHECK(view.size() == vocabulary.size());
        for (std::int32_t column = 0; column < vocabulary.size(); ++column) {
            CHECK(view.attribute(column) == vocabulary.attribute(column));
            CHECK(view.find(vocabulary.attribute(column)) == column);
        }
        CHECK(view.find("w[0]=x") == Vocabulary::unknown);
        CHECK(view.find("") == Vocabulary::unknown);
    }
}

TEST(vocabulary_hash_is_the_one_in_files) {  // tables that were saved are looked up with it: it must not change
    CHECK(hash_text("") == 0x4a29c01987c01ac5u);
    CHECK(hash_text("w") == 0xa55fd2711bd96936u);
    CHECK(hash_text("word") == 0x4aadc07dbe955410u);
    CHECK(hash_text("word[-1]=dog") == 0x2d37ea8681b96b09u);
    CHECK(hash_text("word[-1]=a longer attribute") == 0x20e903bc718b9a68u);
}

// Whatever the arrays hold: a column whose attribute is the text, none, or an error.
TEST(vocabulary_view_trusts_nothing) {
    Vocabulary vocabulary;
    for (int i = 0; i < 20; ++i) vocabulary.insert(std::string("a").append(std::to_string(i)));
    const std::vector<std::uint64_t> sound = VocabularyView::make_slots(vocabulary.arena(), vocabulary.offsets());
    std::uint64_t state = 3;
    int errors = 0;
    for (int trial = 0; trial < 20000; ++trial) {
        const auto draw = [&state](std::uint64_t n) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            return (state >> 33) % n;
        };
        std::vector<std::uint64_t> slots = sound;
        std::vector<std::int64_t> bounds(vocabulary.offsets().begin(), vocabulary.offsets().end());
        for (std::uint64_t changes = 1 + draw(8); changes > 0; --changes) {
            if (draw(2) == 0)
                slots[draw(slots.size())] ^= std::uint64_t{1} << draw(64);
            else
                bounds[draw(bounds.size())] ^= std::int64_t{1} << draw(64);
        }
        const VocabularyView view(vocabulary.arena(), bounds, slots);
        for (std::int32_t column = 0; column < vocabulary.size(); ++column) {
            const std::string_view text = vocabulary.attribute(column);
            try {
                const std::int32_t found = view.find(text);
                CHECK(found == Vocabulary::unknown || view.attribute(found) == text);
            } catch (const std::invalid_argument&) {
                ++errors;
            }
        }
    }
    CHECK(errors > 0);
    const std::vector<std::uint64_t> full(sound.size(), 0x1234567800000001u);
    CHECK(VocabularyView(vocabulary.arena(), vocabulary.offsets(), sound).find("b") == Vocabulary::unknown);
    CHECK_THROWS(VocabularyView(vocabulary.arena(), vocabulary.offsets(), full).find("b"), std::invalid_argument);
    CHECK_THROWS(VocabularyView(vocabulary.arena(), vocabulary.offsets(), std::span(sound).first(32)),
                 std::invalid_argument);
    CHECK_THROWS(VocabularyView(vocabulary.arena(), {}, sound), std::invalid_argument);
}

TEST(vocabulary_checks_utf8) {
    CHECK(is_utf8(""));
    CHECK(is_utf8("a\x7f"));
    CHECK(is_utf8(
        "\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf"));
    for (const char* bad : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xe1\x80",
                            "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf1\x80\x80", "\xf4\x90\x80\x80",
                            "\xf5\x80\x80\x80", "\xff", "\xe1\x80\xc0", "\xf1\x80\x80\x41"})
        CHECK(!is_utf8(bad));
}
