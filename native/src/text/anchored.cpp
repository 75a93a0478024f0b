#include "dualfield/text/anchored.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "anchored_rows.hpp"
#include "dualfield/core/parallel.hpp"

namespace dualfield {

namespace {

constexpr std::size_t rows_of_task = std::size_t{1} << 13;

void hand_on(const AnchoredRowBlock& block, RowSink& sink) {
    std::int32_t* const room = sink.room(block.columns.size());
    std::copy(block.columns.begin(), block.columns.end(), room);
    sink.finish(block.row_sizes);
}

// Reads the rows of a sentence, those where a mask is true if there is one; `look_up` is called when it is due.
template <class LookUp>
void read_sentence(const AnchoredPlaces& places, std::size_t sentence, const bool* mask, AnchoredRowMaker& maker,
                   LookUp look_up) {
    maker.begin(sentence);
    for (std::int64_t row = places.offsets[sentence]; row < places.offsets[sentence + 1]; ++row) {
        if (mask != nullptr && !mask[row]) continue;
        const std::int32_t* const anchors = places.anchors.data() + 2 * row;
        maker.add(anchors[0], anchors[1]);
        if (maker.is_full()) look_up();
    }
    look_up();
}

}  // namespace

void check_places(const AnchoredForm& form, const NumberedTokens& tokens, const AnchoredPlaces& places) {
    const std::int32_t lowest = form.are_arcs ? -1 : 0;
    for (std::size_t sentence = 0; sentence < tokens.n_sentences(); ++sentence) {
        const auto length = static_cast<std::int32_t>(tokens.length(sentence));
        for (std::int64_t row = places.offsets[sentence]; row < places.offsets[sentence + 1]; ++row) {
            const std::int32_t one = places.anchors[static_cast<std::size_t>(2 * row)];
            const std::int32_t two = places.anchors[static_cast<std::size_t>(2 * row + 1)];
            const bool inside = one >= lowest && one < length && two >= 0 && two < length;
            if (inside && (form.are_arcs || one <= two)) continue;
            throw std::invalid_argument(
                "anchors[" + std::to_string(sentence) + "][" + std::to_string(row - places.offsets[sentence]) +
                "] must be two of the " + std::to_string(length) + " tokens of the sentence" +
                (form.are_arcs ? ", or -1 for the root and one token." : ", the first not behind the last.") +
                " Got (" + std::to_string(one) + ", " + std::to_string(two) + ") instead.");
        }
    }
}

void AnchoredReader::collect(std::size_t first, std::size_t last, const bool* mask, Vocabulary& vocabulary) const {
    AnchoredRowMaker maker(form_, tokens_);
    for (std::size_t sentence = first; sentence < last; ++sentence) {
        read_sentence(places_, sentence, mask, maker, [&] { maker.insert_into(vocabulary); });
        maker.take();
    }
}

void AnchoredReader::grow(std::size_t first, std::size_t last, Vocabulary& vocabulary, RowSink& sink) const {
    AnchoredRowMaker maker(form_, tokens_);
    for (std::size_t sentence = first; sentence < last; ++sentence) {
        read_sentence(places_, sentence, nullptr, maker, [&] { maker.insert_into(vocabulary); });
        hand_on(maker.take(), sink);
    }
}

std::int64_t AnchoredReader::find(std::size_t first, std::size_t last, const Vocabulary& vocabulary,
                                  std::size_t n_threads, RowSink& sink) const {
    std::vector<std::size_t> tasks{first};  // sentences where tasks begin, each of a few thousand rows
    for (std::size_t sentence = first + 1; sentence < last; ++sentence)
        if (places_.offsets[sentence] - places_.offsets[tasks.back()] >= static_cast<std::int64_t>(rows_of_task))
            tasks.push_back(sentence);
    const std::size_t n_tasks = tasks.size();
    tasks.push_back(std::max(first, last));
    std::vector<AnchoredRowMaker> makers;
    for (std::size_t thread = 0; thread < std::max<std::size_t>(n_threads, 1); ++thread)
        makers.emplace_back(form_, tokens_);
    std::vector<AnchoredRowBlock> blocks(n_tasks);
    parallel_for(n_tasks, n_threads, [&](std::size_t worker, std::size_t task) {
        AnchoredRowMaker& maker = makers[worker];
        for (std::size_t sentence = tasks[task]; sentence < tasks[task + 1]; ++sentence)
            read_sentence(places_, sentence, nullptr, maker, [&] { maker.find_in(vocabulary); });
        blocks[task] = maker.take();
    });
    std::int64_t n_unknown = 0;
    for (AnchoredRowBlock& block : blocks) {
        hand_on(block, sink);
        n_unknown += block.n_unknown;
        block = {};
    }
    return n_unknown;
}

}  // namespace dualfield
