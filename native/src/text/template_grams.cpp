#include "template_grams.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "template_values.hpp"

namespace dualfield {

namespace {

constexpr std::size_t first_slots = 64;
constexpr std::ptrdiff_t pairs_ahead = 12;  // insertions between prefetching the slot of a pair and looking at it

std::vector<std::int32_t> columns_of(const Template& form) {
    std::set<std::int32_t> columns;
    for (const TemplateLine& line : form.lines)
        for (const Macro& macro : line.macros) columns.insert(macro.derivation.column);
    return {columns.begin(), columns.end()};
}

}  // namespace

PairTable::PairTable() : slots_(first_slots), mask_(first_slots - 1) {}

std::int32_t PairTable::append(std::uint64_t pair, std::size_t at) {
    const std::int32_t id = size();
    if ((pairs_.size() + 1) * 2 > slots_.size()) {
        std::vector<Slot, TableAllocator<Slot>> next(slots_.size() * 2);
        mask_ = next.size() - 1;
        const auto free_place = [this, &next](std::uint64_t key) {
            std::size_t free = place(key);
            while (next[free].id >= 0) free = (free + 1) & mask_;
            return free;
        };
        for (const Slot& slot : slots_)
            if (slot.id >= 0) next[free_place(slot.pair)] = slot;
        at = free_place(pair);
        slots_.swap(next);
    }
    pairs_.push_back(pair);
    slots_[at] = {pair, id};
    return id;
}

std::int32_t DerivedValues::find(std::string_view value, const Characters& characters) {
    derive(derivation_, value, characters, scratch_);
    return texts_.insert(scratch_);
}

std::int32_t DerivedValues::of_outside(std::ptrdiff_t place, TemplateSyntax syntax, Vocabulary& values,
                                       const Characters& characters) {
    std::vector<std::int32_t>& known = place < 0 ? known_before_ : known_behind_;
    const auto at = static_cast<std::size_t>((place < 0 ? -place : place) - 1);
    if (at >= known.size()) known.resize(at + 1, -1);
    if (known[at] < 0) {
        derive_outside(derivation_, syntax, place, characters, scratch_);
        known[at] = is_plain() ? values.insert(scratch_) : texts_.insert(scratch_);
    }
    return known[at];
}

void DerivedValues::clear() {
    texts_ = Vocabulary();
    known_.clear();
    known_before_.clear();
    known_behind_.clear();
}

SeriesSet::SeriesSet(const Template& form, const Characters& characters)
    : form_(form), characters_(characters), columns_(columns_of(form)), values_(columns_.size()) {}

std::size_t SeriesSet::add_macro(const Macro& macro) {
    const auto column = std::lower_bound(columns_.begin(), columns_.end(), macro.derivation.column);
    const auto same = [&macro](const DerivedValues& other) { return other.derivation() == macro.derivation; };
    const auto derived =
        static_cast<std::size_t>(std::find_if(derived_.begin(), derived_.end(), same) - derived_.begin());
    if (derived == derived_.size())
        derived_.emplace_back(macro.derivation, static_cast<std::size_t>(column - columns_.begin()));
    const auto kind = macro.absolute ? Series::Kind::absolute : Series::Kind::relative;
    const std::int32_t offset = macro.absolute ? macro.offset : 0;
    for (std::size_t at = 0; at < series_.size(); ++at) {
        const Series& other = series_[at];
        if (other.kind == kind && other.derived == derived && other.absolute_offset == offset) return at;
    }
    Series series;
    series.kind = kind;
    series.derived = derived;
    series.absolute_offset = offset;
    series_.push_back(std::move(series));
    return series_.size() - 1;
}

std::size_t SeriesSet::add_joint(std::size_t left, std::size_t right, std::int32_t ahead) {
    for (std::size_t at = 0; at < series_.size(); ++at) {
        const Series& other = series_[at];
        if (other.kind == Series::Kind::joint && other.left == left && other.right == right && other.ahead == ahead)
            return at;
    }
    Series series;
    series.kind = Series::Kind::joint;
    series.left = left;
    series.right = right;
    series.ahead = ahead;
    if (form_.omit_outside) {  // only where both parts are
        series.begin = std::max(series_[left].begin, series_[right].begin - ahead);
        series.end = std::min(series_[left].end, series_[right].end - ahead);
    }
    series_.push_back(std::move(series));
    return series_.size() - 1;
}

// Where strings stand for what is outside, a series goes on as far as it is asked.
void SeriesSet::require(std::size_t at, std::ptrdiff_t begin, std::ptrdiff_t end) {
    Series& series = series_[at];
    series.begin = std::min(series.begin, begin);
    series.end = std::max(series.end, end);
    if (series.kind != Series::Kind::joint) return;
    require(series.left, series.begin, series.end);
    require(series.right, series.begin + series.ahead, series.end + series.ahead);
}

// The first macro that is not absolute gives the place, so that lines which differ by a shift share their series.
SeriesSet::Place SeriesSet::add(const std::vector<Macro>& macros) {
    Place place{};
    const auto anchor = std::find_if(macros.begin(), macros.end(), [](const Macro& macro) { return !macro.absolute; });
    if (anchor != macros.end()) place.shift = place.lowest = place.highest = anchor->offset;
    for (const Macro& macro : macros) {
        if (macro.absolute) {
            place.shortest = std::max(place.shortest, macro.offset < 0 ? -macro.offset : macro.offset);
            place.always_outside |= macro.offset == 0;
        } else {
            place.lowest = std::min(place.lowest, macro.offset);
            place.highest = std::max(place.highest, macro.offset);
        }
        const std::size_t one = add_macro(macro);
        const bool is_first = &macro == &macros.front();
        place.series = is_first ? one : add_joint(place.series, one, macro.absolute ? 0 : macro.offset - place.shift);
    }
    if (macros.empty()) {
        Series series;
        series.kind = Series::Kind::constant;
        series_.push_back(std::move(series));
        place.series = series_.size() - 1;
    }
    if (!form_.omit_outside) require(place.series, std::min(place.shift, 0), std::max(place.shift, 0));
    return place;
}

std::int32_t SeriesSet::derived_at(DerivedValues& derived, const std::int32_t* ids, std::ptrdiff_t place,
                                   std::ptrdiff_t length) {
    Vocabulary& values = values_[derived.column()];
    if (place < 0) return derived.of_outside(place, form_.syntax, values, characters_);
    if (place >= length) return derived.of_outside(place - length + 1, form_.syntax, values, characters_);
    const std::int32_t id = ids[place];
    return derived.is_plain() ? id : derived.of_value(id, values, characters_);
}

void SeriesSet::read_macro(Series& series, const std::int32_t* ids, std::ptrdiff_t length) {
    DerivedValues& derived = derived_[series.derived];
    const std::int32_t* const column = ids + static_cast<std::ptrdiff_t>(derived.column()) * length;
    if (series.kind == Series::Kind::absolute) {
        const std::ptrdiff_t place =
            series.absolute_offset < 0 ? length + series.absolute_offset : std::ptrdiff_t{series.absolute_offset} - 1;
        std::fill(series.ids.begin(), series.ids.end(), derived_at(derived, column, place, length));
        return;
    }
    auto id = series.ids.begin();
    for (std::ptrdiff_t place = series.begin; place < length + series.end; ++place)
        *id++ = derived_at(derived, column, place, length);
}

void SeriesSet::read_joint(Series& series, std::size_t count) {
    const Series &left = series_[series.left], &right = series_[series.right];
    const std::int32_t* const lefts = left.numbers.data() + (series.begin - left.begin);
    const std::int32_t* const rights = right.numbers.data() + (series.begin + series.ahead - right.begin);
    const auto size = static_cast<std::ptrdiff_t>(count);
    for (std::ptrdiff_t i = 0; i < std::min(pairs_ahead, size); ++i) series.pairs.prefetch(lefts[i], rights[i]);
    for (std::ptrdiff_t i = 0; i < size; ++i) {
        if (i + pairs_ahead < size) series.pairs.prefetch(lefts[i + pairs_ahead], rights[i + pairs_ahead]);
        series.ids[static_cast<std::size_t>(i)] = series.pairs.insert(lefts[i], rights[i]);
    }
}

void SeriesSet::read(const std::int32_t* ids, std::size_t length) {
    const auto size = static_cast<std::ptrdiff_t>(length);
    for (Series& series : series_) {
        const bool as_it_is = series.kind == Series::Kind::relative && derived_[series.derived].is_plain() &&
                              series.begin == 0 && series.end == 0;
        const bool is_macro = series.kind == Series::Kind::relative || series.kind == Series::Kind::absolute;
        if (is_macro) series.texts = &derived_[series.derived].texts(values_[derived_[series.derived].column()]);
        if (as_it_is) {
            series.numbers = {ids + derived_[series.derived].column() * length, length};
            continue;
        }
        const auto count = static_cast<std::size_t>(std::max(size + series.end - series.begin, std::ptrdiff_t{0}));
        series.ids.resize(count);
        series.numbers = series.ids;
        if (series.kind == Series::Kind::joint) {
            if (count > 0) read_joint(series, count);
        } else if (is_macro) {
            read_macro(series, ids, size);
        }
    }
}

std::int32_t SeriesSet::size(std::size_t at) const noexcept {
    const Series& series = series_[at];
    if (series.kind == Series::Kind::constant) return 1;
    if (series.kind == Series::Kind::joint) return series.pairs.size();
    return series.texts->size();
}

void SeriesSet::spell(std::size_t at, std::int32_t id, std::span<const Piece> pieces, TextBuffer& buffer) const {
    struct Value {
        const Vocabulary* texts;
        std::int32_t id;
    };
    std::array<Value, Template::most_macros> values;
    const std::size_t count = pieces.size() - 1;
    const Series* series = &series_[at];
    for (std::size_t i = count; i-- > 0;) {
        const bool is_joint = i > 0;
        values[i] = is_joint ? Value{series_[series->right].texts, series->pairs.right(id)} : Value{series->texts, id};
        if (!is_joint) break;
        id = series->pairs.left(id);
        series = &series_[series->left];
    }
    pieces.front().append_to(buffer);
    for (std::size_t i = 0; i < count; ++i) {
        const std::string_view text = values[i].texts->attribute(values[i].id);
        const std::span<const char> arena = values[i].texts->arena();
        buffer.append(text, static_cast<std::size_t>(arena.data() + arena.size() - text.data()));
        pieces[i + 1].append_to(buffer);
    }
}

std::size_t SeriesSet::n_keys() const noexcept {
    std::size_t count = 0;
    for (const Vocabulary& values : values_) count += static_cast<std::size_t>(values.size());
    for (const DerivedValues& derived : derived_) count += derived.size();
    for (const Series& series : series_) count += static_cast<std::size_t>(series.pairs.size());
    return count;
}

void SeriesSet::clear() {
    for (Vocabulary& values : values_) values = Vocabulary();
    for (DerivedValues& derived : derived_) derived.clear();
    for (Series& series : series_) series.pairs = PairTable();
}

}  // namespace dualfield
