#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "dualfield/text/anchored.hpp"

using dualfield::AnchoredForm;
using dualfield::AnchoredMacro;
using dualfield::AnchoredPlaces;
using dualfield::AnchoredReader;
using dualfield::NumberedTokens;
using dualfield::Vocabulary;
using Kind = dualfield::AnchoredMacro::Kind;

namespace {

// Columns of rows as attributes, with blanks between.
class Rows : public dualfield::RowSink {
  public:
    explicit Rows(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}
    std::vector<std::string> rows;

    std::int32_t* room(std::size_t most_columns) override {
        room_.assign(most_columns, -7);
        return room_.data();
    }
    void finish(std::span<const std::int32_t> row_sizes) override {
        auto at = room_.begin();
        for (std::int32_t size : row_sizes) {
            rows.emplace_back();
            for (; size > 0; --size) rows.back().append(vocabulary_.attribute(*at++)).push_back(' ');
        }
    }

  private:
    const Vocabulary& vocabulary_;
    std::vector<std::int32_t> room_;
};

NumberedTokens numbered(const std::vector<std::vector<std::string>>& sentences) {
    NumberedTokens tokens;
    tokens.values.resize(1);
    for (const std::vector<std::string>& sentence : sentences) {
        for (const std::string& word : sentence) tokens.ids.push_back(tokens.values[0].insert(word));
        tokens.offsets.push_back(static_cast<std::int64_t>(tokens.ids.size()));
    }
    return tokens;
}

const std::vector<std::string> sentence{"a", "bb", "a", "a word of more than sixteen bytes"};

}  // namespace

TEST(anchored_rows_of_arcs) {
    const NumberedTokens tokens = numbered({sentence, {}});
    const AnchoredForm form{true,
                            {{{"0:", "/", ""}, {{Kind::value, 0, -1, 0}, {Kind::value, 1, 1, 0}}},
                             {{"1:", ""}, {{Kind::size, 0, 0, 0}}},
                             {{"2:", ""}, {{Kind::between, 0, 0, 0}}},
                             {{"3:", ""}, {{Kind::value, 1, 0, 0}}}}};
    const std::vector<std::int32_t> anchors{-1, 3, 3, 0, 0, 1};
    const std::vector<std::int64_t> offsets{0, 3, 3};
    const AnchoredPlaces places{anchors, offsets};
    check_places(form, tokens, places);
    const AnchoredReader reader(form, tokens, places);
    Vocabulary vocabulary;
    Rows grown(vocabulary), found(vocabulary);
    reader.grow(0, 2, vocabulary, grown);
    const std::vector<std::string> wanted{"0:_ROOT/_E 1:_ROOT 2:a 2:bb 3:" + sentence[3] + " ",
                                          "0:a/bb 1:L3 2:bb 2:a 3:a ", "0:_B/a 1:R1 3:bb "};
    CHECK(grown.rows == wanted);
    CHECK(reader.find(0, 2, vocabulary, 2, found) == 0);
    CHECK(found.rows == wanted);
}

TEST(anchored_rows_of_segments_and_a_mask) {
    const NumberedTokens tokens = numbered({{}, sentence});
    const AnchoredForm form{
        false, {{{"0:", ""}, {{Kind::whole, 0, 0, 0}}}, {{"1:", ""}, {{Kind::size, 0, 0, 0}}}, {{"bias"}, {}}}};
    const std::vector<std::int32_t> anchors{0, 2, 1, 1, 3, 3};
    const std::vector<std::int64_t> offsets{0, 0, 3};
    const AnchoredPlaces places{anchors, offsets};
    check_places(form, tokens, places);
    const AnchoredReader reader(form, tokens, places);
    Vocabulary vocabulary;
    const bool mask[] = {true, false, true};
    reader.collect(0, 2, mask, vocabulary);
    CHECK(vocabulary.size() == 5);
    Rows found(vocabulary);
    CHECK(reader.find(0, 2, vocabulary, 1, found) == 1);
    CHECK(
        (found.rows == std::vector<std::string>{"0:a bb a 1:3 bias ", "1:1 bias ", "0:" + sentence[3] + " 1:1 bias "}));
}

TEST(anchored_rows_refuse_places_outside) {
    const NumberedTokens tokens = numbered({sentence});
    const std::vector<std::int64_t> offsets{0, 1};
    const std::vector<std::vector<std::int32_t>> outside{{0, 4}, {-2, 0}, {4, 0}, {0, -1}};
    for (const bool are_arcs : {false, true}) {
        const AnchoredForm form{are_arcs, {}};
        for (const std::vector<std::int32_t>& anchors : outside) {
            const AnchoredPlaces places{anchors, offsets};
            CHECK_THROWS(check_places(form, tokens, places), std::invalid_argument);
        }
    }
}
