#include "anchored_rows.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace dualfield {

namespace {

// Codes below those of columns, in a row that is being made: what has not been looked at, and what waits for a lookup.
constexpr std::int32_t unmet = -2, first_waiting = -3;
static_assert(unmet < Vocabulary::unknown);
constexpr std::size_t bytes_ahead = 16;  // lookups between prefetching the bytes of an attribute and comparing them

constexpr std::string_view before = "_B", behind = "_E", root = "_ROOT";
constexpr std::int32_t n_distances = 6;  // 1, 2, 3, 4, 5-9, 10+

std::size_t distance_class(std::int32_t distance) {
    return static_cast<std::size_t>(distance < 5 ? distance - 1 : distance < 10 ? 4 : 5);
}

std::vector<std::string> texts_of_sizes(bool are_arcs, const NumberedTokens& tokens) {
    std::vector<std::string> texts;
    if (are_arcs) {
        for (const char* direction : {"L", "R"})
            for (const char* distance : {"1", "2", "3", "4", "5-9", "10+"})
                texts.push_back(std::string(direction) + distance);
        texts.emplace_back(root);
        return texts;
    }
    std::size_t longest = 0;
    for (std::size_t i = 0; i < tokens.n_sentences(); ++i) longest = std::max(longest, tokens.length(i));
    for (std::size_t size = 1; size <= longest; ++size) texts.push_back(std::to_string(size));
    return texts;
}

// The place of an entry that is equal to `wanted`, which is put behind the others if there is none.
template <class T, class Same>
std::size_t place_of(std::vector<T>& entries, const Same& same, T wanted) {
    const auto found = std::find_if(entries.begin(), entries.end(), same);
    const auto at = static_cast<std::size_t>(found - entries.begin());
    if (found == entries.end()) entries.push_back(std::move(wanted));
    return at;
}

}  // namespace

AnchoredRowMaker::AnchoredRowMaker(const AnchoredForm& form, const NumberedTokens& tokens)
    : are_arcs_(form.are_arcs),
      tokens_(tokens),
      sizes_(texts_of_sizes(form.are_arcs, tokens)),
      stamps_(tokens.values.size()) {
    for (const AnchoredText& text : form.texts) plans_.push_back(plan_of(text));
}

AnchoredRowMaker::Plan AnchoredRowMaker::plan_of(const AnchoredText& text) {
    using Kind = AnchoredMacro::Kind;
    Plan plan{{text.pieces.begin(), text.pieces.end()}, {}, 0, -1, {}};
    bool named[2] = {false, false};
    for (const AnchoredMacro& macro : text.macros) {
        Step step{macro.kind, static_cast<std::size_t>(macro.anchor), macro.column};
        if (macro.kind == Kind::value) {
            const auto same = [&macro](const Series& one) {
                return one.column == macro.column && one.offset == macro.offset;
            };
            step.source = place_of(series_, same, {macro.column, macro.offset, {}});
            named[macro.anchor] = true;
        } else {
            named[0] = named[1] = true;
        }
        if (macro.kind == Kind::whole)
            step.source = place_of(joined_, [&macro](const Joined& one) { return one.column == macro.column; },
                                   {macro.column, {}, {}});
        if (macro.kind == Kind::between) {
            plan.between = static_cast<int>(plan.steps.size());
            stamps_[macro.column].resize(static_cast<std::size_t>(tokens_.values[macro.column].size()), 0);
        }
        plan.steps.push_back(step);
    }
    plan.only_anchor = named[0] && named[1] ? -1 : named[1] ? 1 : 0;
    return plan;
}

AnchoredRowMaker::View AnchoredRowMaker::value(std::size_t column, std::int32_t id) const {
    const Vocabulary& values = tokens_.values[column];
    const std::string_view text = values.attribute(id);
    return {text.data(), text.size(),
            static_cast<std::size_t>(values.arena().data() + values.arena().size() - text.data())};
}

const std::int32_t* AnchoredRowMaker::ids(std::size_t column) const {
    const std::size_t start = static_cast<std::size_t>(tokens_.offsets[sentence_]) * tokens_.values.size();
    return tokens_.ids.data() + start + column * tokens_.length(sentence_);
}

void AnchoredRowMaker::begin(std::size_t sentence) {
    sentence_ = sentence;
    const auto length = static_cast<std::ptrdiff_t>(tokens_.length(sentence));
    const auto as_view = [](std::string_view text) { return View{text.data(), text.size(), text.size()}; };
    for (Series& series : series_) {
        const std::int32_t* const numbers = ids(series.column);
        series.views.clear();
        series.views.push_back(as_view(root));
        for (std::ptrdiff_t t = series.offset; t < length + series.offset; ++t)
            series.views.push_back(t < 0         ? as_view(before)
                                   : t >= length ? as_view(behind)
                                                 : value(series.column, numbers[t]));
    }
    for (Joined& joined : joined_) {
        const std::int32_t* const numbers = ids(joined.column);
        joined.text.clear();
        joined.begins.clear();
        for (std::ptrdiff_t t = 0; t < length; ++t) {
            joined.begins.push_back(joined.text.size());
            joined.text.append(tokens_.values[joined.column].attribute(numbers[t])).push_back(' ');
        }
        joined.begins.push_back(joined.text.size());
    }
    for (Plan& plan : plans_)
        if (plan.only_anchor >= 0) plan.places.assign(static_cast<std::size_t>(length) + 1, unmet);
}

const std::string& AnchoredRowMaker::size_text(std::int32_t one, std::int32_t two) const {
    if (!are_arcs_) return sizes_[static_cast<std::size_t>(two - one)];
    if (one < 0) return sizes_.back();
    return one < two ? sizes_[n_distances + distance_class(two - one)] : sizes_[distance_class(one - two)];
}

AnchoredRowMaker::View AnchoredRowMaker::view_of(const Step& step, std::int32_t one, std::int32_t two) const {
    switch (step.kind) {
        case AnchoredMacro::Kind::value:
            return series_[step.source].views[static_cast<std::size_t>((step.anchor == 0 ? one : two) + 1)];
        case AnchoredMacro::Kind::whole: {
            const Joined& joined = joined_[step.source];
            const std::size_t start = joined.begins[static_cast<std::size_t>(one)];
            const std::size_t stop = joined.begins[static_cast<std::size_t>(two) + 1] - 1;  // without the last blank
            return {joined.text.data() + start, stop - start, joined.text.size() - start};
        }
        default: {
            const std::string& text = size_text(one, two);  // begins with the direction
            const bool is_letter = step.kind == AnchoredMacro::Kind::direction && one >= 0;
            return {text.data(), is_letter ? 1 : text.size(), text.size()};
        }
    }
}

// Puts an attribute into the queue and returns the code that stands for its column.
std::int32_t AnchoredRowMaker::compose(const Plan& plan, std::int32_t one, std::int32_t two, const View* between) {
    const std::size_t start = composed_.size();
    plan.pieces.front().append_to(composed_);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const View view = static_cast<int>(i) == plan.between ? *between : view_of(plan.steps[i], one, two);
        composed_.append({view.bytes, view.size}, view.readable);
        plan.pieces[i + 1].append_to(composed_);
    }
    waiting_.push_back({start, composed_.size(), 0});
    return first_waiting - static_cast<std::int32_t>(waiting_.size() - 1);
}

// An attribute for each distinct value between the anchors, in the order of the tokens.
void AnchoredRowMaker::add_between(const Plan& plan, std::int32_t one, std::int32_t two) {
    const std::size_t column = plan.steps[static_cast<std::size_t>(plan.between)].source;
    std::vector<std::uint32_t>& stamps = stamps_[column];
    if (stamp_ == std::numeric_limits<std::uint32_t>::max()) {
        for (std::vector<std::uint32_t>& all : stamps_) std::fill(all.begin(), all.end(), 0);
        stamp_ = 0;
    }
    ++stamp_;
    const std::int32_t* const numbers = ids(column);
    for (std::int32_t t = std::min(one, two) + 1; t < std::max(one, two); ++t) {
        std::uint32_t& stamp = stamps[static_cast<std::size_t>(numbers[t])];
        if (stamp == stamp_) continue;
        stamp = stamp_;
        const View view = value(column, numbers[t]);
        block_.columns.push_back(compose(plan, one, two, &view));
    }
}

void AnchoredRowMaker::add(std::int32_t one, std::int32_t two) {
    const std::size_t start = block_.columns.size();
    for (Plan& plan : plans_) {
        if (plan.between >= 0) {
            add_between(plan, one, two);
        } else if (plan.only_anchor >= 0) {
            std::int32_t& column = plan.places[static_cast<std::size_t>((plan.only_anchor == 0 ? one : two) + 1)];
            if (column == unmet) column = compose(plan, one, two, nullptr);
            block_.columns.push_back(column);
        } else {
            block_.columns.push_back(compose(plan, one, two, nullptr));
        }
    }
    block_.row_sizes.push_back(static_cast<std::int32_t>(block_.columns.size() - start));
}

// Looks up what waits, in the order in which it came, so that new columns are numbered by first appearance. The slots
// are prefetched for all of it, the bytes a few attributes ahead.
template <class LookUp>
void AnchoredRowMaker::resolve(const Vocabulary& vocabulary, LookUp look_up) {
    for (Waiting& one : waiting_) {
        one.hash = hash_text(composed_.text(one.start, one.stop));
        vocabulary.prefetch_slot(one.hash);
    }
    found_.resize(waiting_.size());
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
        if (i + bytes_ahead < waiting_.size()) vocabulary.prefetch_bytes(waiting_[i + bytes_ahead].hash);
        found_[i] = look_up(composed_.text(waiting_[i].start, waiting_[i].stop), waiting_[i].hash);
    }
    waiting_.clear();
    composed_.clear();
    settle();
}

// Writes columns in place of codes, and closes the gaps of those that are unknown.
void AnchoredRowMaker::settle() {
    const auto settled = [this](std::int32_t code) {
        return code <= first_waiting ? found_[static_cast<std::size_t>(first_waiting - code)] : code;
    };
    for (Plan& plan : plans_)
        for (std::int32_t& column : plan.places) column = settled(column);
    std::size_t at = settled_columns_, kept = settled_columns_;
    for (std::size_t row = settled_rows_; row < block_.row_sizes.size(); ++row) {
        const std::size_t stop = at + static_cast<std::size_t>(block_.row_sizes[row]), start = kept;
        for (; at < stop; ++at) {
            const std::int32_t column = settled(block_.columns[at]);
            block_.columns[kept] = column;
            kept += column != Vocabulary::unknown;
        }
        block_.row_sizes[row] = static_cast<std::int32_t>(kept - start);
    }
    block_.n_unknown += static_cast<std::int64_t>(at - kept);
    block_.columns.resize(kept);
    settled_columns_ = kept;
    settled_rows_ = block_.row_sizes.size();
}

void AnchoredRowMaker::insert_into(Vocabulary& vocabulary) {
    resolve(vocabulary,
            [&vocabulary](std::string_view text, std::uint64_t hash) { return vocabulary.insert(text, hash); });
}

void AnchoredRowMaker::find_in(const Vocabulary& vocabulary) {
    resolve(vocabulary,
            [&vocabulary](std::string_view text, std::uint64_t hash) { return vocabulary.find(text, hash); });
}

AnchoredRowBlock AnchoredRowMaker::take() {
    settled_rows_ = settled_columns_ = 0;
    return std::exchange(block_, {});
}

}  // namespace dualfield
