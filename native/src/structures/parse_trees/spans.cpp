// Labelled bracketings: the layout of their parts, and the questions, by the chart of each sentence (spans_chart.hpp).
#include "dualfield/structures/parse_trees/spans.hpp"

#include <algorithm>

#include "../passes.hpp"
#include "dualfield/structures/parse_trees/span_rows.hpp"
#include "spans_k_best.hpp"
#include "spans_pass.hpp"

namespace dualfield {
namespace {

// A pass that knows whether the whole sentence must have a label.
template <bool rooted>
struct Pass : SpansPass {
    explicit Pass(const Structure& structure) : SpansPass(structure, rooted) {}
};

template <class Body>
void for_sentences(const Structure& structure, bool rooted, Examples examples, const ScoreView& view,
                   std::size_t n_threads, Status* statuses, bool sums, Body body) {
    if (rooted)
        for_examples<Pass<true>>(structure, examples, view, n_threads, statuses, sums, body);
    else
        for_examples<Pass<false>>(structure, examples, view, n_threads, statuses, sums, body);
}

}  // namespace

SpansStructure::SpansStructure(std::size_t n_labels, std::span<const std::int64_t> offsets, bool rooted)
    : n_labels_(n_labels), rooted_(rooted) {
    label_offsets_ = offsets;
    parts_.tables.push_back({n_labels, offsets, offsets.first(offsets.size() - 1)});
}

void SpansStructure::log_partition(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                   Status* statuses) const {
    for_sentences(*this, rooted_, examples, view, n_threads, statuses, true,
                  [&](const SpansPass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

void SpansStructure::maximum(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                             Status* statuses) const {
    for_sentences(*this, rooted_, examples, view, n_threads, statuses, false,
                  [&](const SpansPass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

void SpansStructure::marginals(Examples examples, const ScoreView& view, std::size_t n_threads, const PartSums& sums,
                               double* out, Status* statuses) const {
    for_sentences(*this, rooted_, examples, view, n_threads, statuses, true,
                  [&](SpansPass& pass, std::size_t i, std::size_t row) {
                      out[i] = pass.total();
                      pass.spread(sums.own[0] + row * n_labels_);
                  });
}

void SpansStructure::argmax(Examples examples, const ScoreView& view, std::size_t n_threads, std::int32_t* labels,
                            Status* statuses) const {
    for_sentences(*this, rooted_, examples, view, n_threads, statuses, false,
                  [&](SpansPass& pass, std::size_t, std::size_t row) { pass.decode(labels + row); });
}

void SpansStructure::max_marginals(Examples examples, const ScoreView& view, std::size_t n_threads, double* own,
                                   Status* statuses) const {
    for_sentences(*this, rooted_, examples, view, n_threads, statuses, false,
                  [&](SpansPass& pass, std::size_t, std::size_t row) { pass.spread_max(own + row * n_labels_); });
}

void SpansStructure::entropy(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                             Status* statuses) const {
    for_sentences(*this, rooted_, examples, view, n_threads, statuses, true,
                  [&](SpansPass& pass, std::size_t i, std::size_t) { out[i] = pass.entropy(); });
}

void SpansStructure::sample(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t n_samples,
                            std::uint64_t seed, std::int32_t* labels, Status* statuses) const {
    const std::size_t stride = first(examples.last) - first(examples.first);
    for_sentences(*this, rooted_, examples, view, n_threads, statuses, true,
                  [&](SpansPass& pass, std::size_t i, std::size_t row) {
                      RandomStream random(seed, examples.first + i);
                      for (std::size_t s = 0; s < n_samples; ++s)
                          pass.draw([&] { return random.uniform(); }, labels + s * stride + row);
                  });
}

void SpansStructure::k_best(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t k,
                            std::int32_t* labels, double* scores, Status* statuses) const {
    const std::size_t stride = first(examples.last) - first(examples.first);
    for_sentences(*this, rooted_, examples, view, n_threads, statuses, false,
                  [&](SpansPass& pass, std::size_t i, std::size_t row) {
                      BestSpans best(pass.chart());
                      for (std::size_t r = 0; r < k; ++r) scores[i * k + r] = best.tree(r, labels + r * stride + row);
                  });
}

// One sentence after another, in the memory of one pass.
class SpansStructure::OneSentence final : public Block {
  public:
    OneSentence(const SpansStructure& structure, bool rooted) : pass_(structure, rooted) {}

    Answer marginals(std::size_t example, const ScoreView& scores, const PartSums& sums) override {
        pass_.begin(example, example, scores);
        pass_.up_sum();
        if (pass_.status() == Status::ok) pass_.spread(sums.own[0]);
        return {pass_.total(), pass_.status()};
    }
    Answer best(std::size_t example, const ScoreView& scores, std::int32_t* labels) override {
        pass_.begin(example, example, scores);
        pass_.up_max();
        if (pass_.status() == Status::ok) pass_.decode(labels);
        return {pass_.total(), pass_.status()};
    }

  private:
    SpansPass pass_;
};

std::unique_ptr<Block> SpansStructure::block() const {
    return std::make_unique<OneSentence>(*this, rooted_);
}

void SpansStructure::list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const {
    out.own[0].assign(labels, labels + length(example));
    out.shared.clear();
}

std::string SpansStructure::no_labelling(std::size_t) const {
    return std::string("no tree has every bracket that must be there and none that is forbidden") +
           (rooted_ ? ", with a label for the whole sentence." : ".");
}

std::string SpansStructure::refusal(std::size_t example, const std::int32_t* labels) const {
    const std::size_t n_words = n_words_of(length(example));
    if (rooted_ && n_words > 0 && labels[span_row(n_words, 0, n_words)] == 0) return "the whole sentence has no label.";
    return crossing_brackets(n_words, labels);
}

}  // namespace dualfield
