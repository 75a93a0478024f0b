// Semi-Markov sequences: the layout of their parts, and the questions, by passes over each of them
// (semi_markov_pass.hpp).
#include "dualfield/structures/semi_markov.hpp"

#include <algorithm>

#include "dualfield/core/random.hpp"
#include "passes.hpp"
#include "semi_markov_pass.hpp"

namespace dualfield {

SemiMarkovStructure::SemiMarkovStructure(std::size_t n_labels, std::span<const std::int64_t> offsets,
                                         const Options& options)
    : n_labels_(n_labels), options_(options), kind_of_(n_labels, -1) {
    const std::size_t n = offsets.size() - 1;
    label_offsets_ = offsets;
    for (std::size_t kind = 0; kind < options.n_kinds; ++kind)
        for (std::size_t which = 0; which < kRoles; ++which)
            if (const std::int32_t label = role(kind, static_cast<Role>(which)); label >= 0)
                kind_of_[static_cast<std::size_t>(label)] = static_cast<std::int32_t>(kind);
    parts_.tables.push_back({n_labels, offsets, offsets.first(n)});
    segment_offsets_.resize(n + 1, 0);
    for (std::size_t i = 0; i < n; ++i)
        segment_offsets_[i + 1] = segment_offsets_[i] + static_cast<std::int64_t>(n_segments(length(i)));
    if (options.with_segments)
        parts_.tables.push_back({options.n_kinds, segment_offsets_, std::span(segment_offsets_).first(n)});
    parts_.n_shared =
        checked_product(options.n_kinds, options.n_kinds + options.max_length) + (options.with_ends ? 2 * n_labels : 0);
}

std::size_t SemiMarkovStructure::first_segment(std::size_t n_nodes, std::size_t node) const {
    const std::size_t longest = options_.max_length, full = n_nodes > longest ? n_nodes - longest : 0;
    if (node <= full) return node * longest;
    // Nodes from `full` on have as many segments as there are nodes left.
    const std::size_t more = node - full;
    return full * longest + more * (n_nodes - full) - more * (more - 1) / 2;
}

SemiMarkovStructure::Segment SemiMarkovStructure::segment_at(const std::int32_t* labels, std::size_t n_nodes,
                                                             std::size_t first) const {
    const std::int32_t label = labels[first];
    const auto kind = static_cast<std::size_t>(std::max(kind_of_[static_cast<std::size_t>(label)], 0));
    const std::int32_t begin = role(kind, kBegin), inside = role(kind, kInside), end = role(kind, kEnd);
    const bool is_single = label == role(kind, kSingle);
    if (label != begin) return {first, 1, kind, is_single};
    std::size_t length = 1;
    while (first + length < n_nodes && inside >= 0 && labels[first + length] == inside) ++length;
    if (inside != end && first + length < n_nodes && labels[first + length] == end)
        return {first, length + 1, kind, true};
    return {first, length, kind, inside == end ? is_single || length > 1 : is_single && length == 1};
}

void SemiMarkovStructure::write(const Segment& segment, std::int32_t* labels) const {
    std::int32_t* own = labels + segment.first;
    if (segment.length == 1) {
        own[0] = role(segment.kind, kSingle);
        return;
    }
    own[0] = role(segment.kind, kBegin);
    std::fill_n(own + 1, segment.length - 2, role(segment.kind, kInside));
    own[segment.length - 1] = role(segment.kind, kEnd);
}

void SemiMarkovStructure::log_partition(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                        Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true,
                       [&](const Pass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

void SemiMarkovStructure::maximum(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                  Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](const Pass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

void SemiMarkovStructure::marginals(Examples examples, const ScoreView& view, std::size_t n_threads,
                                    const PartSums& sums, double* out, Status* statuses) const {
    double* segments = options_.with_segments ? sums.own[1] : nullptr;
    const std::int64_t begin = segment_offsets_[examples.first];
    for_examples<Pass>(
        *this, examples, view, n_threads, statuses, true, [&](Pass& pass, std::size_t i, std::size_t row) {
            const auto first = static_cast<std::size_t>(segment_offsets_[examples.first + i] - begin);
            out[i] = pass.total();
            pass.down_sum();
            pass.spread(sums.own[0] + row * n_labels_, segments ? segments + first * options_.n_kinds : nullptr,
                        sums.shared ? sums.shared + i * parts_.n_shared : nullptr);
        });
}

void SemiMarkovStructure::argmax(Examples examples, const ScoreView& view, std::size_t n_threads, std::int32_t* labels,
                                 Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](Pass& pass, std::size_t, std::size_t row) { pass.decode(labels + row); });
}

void SemiMarkovStructure::max_marginals(Examples examples, const ScoreView& view, std::size_t n_threads, double* own,
                                        Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](Pass& pass, std::size_t, std::size_t row) {
                           pass.down_max();
                           pass.spread_max(own + row * n_labels_);
                       });
}

void SemiMarkovStructure::entropy(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                  Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true, [&](Pass& pass, std::size_t i, std::size_t) {
        pass.down_sum();
        out[i] = pass.entropy();
    });
}

void SemiMarkovStructure::sample(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t n_samples,
                                 std::uint64_t seed, std::int32_t* labels, Status* statuses) const {
    const std::size_t stride = first(examples.last) - first(examples.first);
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true,
                       [&](Pass& pass, std::size_t i, std::size_t row) {
                           pass.down_sum();
                           RandomStream random(seed, examples.first + i);
                           for (std::size_t s = 0; s < n_samples; ++s)
                               pass.draw([&] { return random.uniform(); }, labels + s * stride + row);
                       });
}

// One sequence after another, in the memory of one pass.
class SemiMarkovStructure::OneSequence final : public Block {
  public:
    explicit OneSequence(const SemiMarkovStructure& structure) : structure_(structure), pass_(structure) {}

    Answer marginals(std::size_t example, const ScoreView& scores, const PartSums& sums) override {
        begin(example, scores);
        pass_.up_sum();
        if (pass_.status() == Status::ok) {
            pass_.down_sum();
            pass_.spread(sums.own[0], structure_.options_.with_segments ? sums.own[1] : nullptr, sums.shared);
        }
        return {pass_.total(), pass_.status()};
    }
    Answer best(std::size_t example, const ScoreView& scores, std::int32_t* labels) override {
        begin(example, scores);
        pass_.up_max();
        if (pass_.status() == Status::ok) pass_.decode(labels);
        return {pass_.total(), pass_.status()};
    }

  private:
    void begin(std::size_t example, const ScoreView& scores) {
        pass_.forget();  // other scores may be in the same place
        pass_.begin(example, example, scores);
    }

    const SemiMarkovStructure& structure_;
    Pass pass_;
};

std::unique_ptr<Block> SemiMarkovStructure::block() const {
    return std::make_unique<OneSequence>(*this);
}

void SemiMarkovStructure::list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const {
    const std::size_t n = length(example), n_kinds = options_.n_kinds, longest = options_.max_length;
    out.own[0].assign(labels, labels + n);
    out.own[1].assign(options_.with_segments ? n_segments(n) : 0, -1);
    out.shared.clear();
    std::size_t before = n_kinds;
    for (std::size_t s = 0; s < n;) {
        const Segment segment = segment_at(labels, n, s);
        const std::size_t length = std::min(segment.length, longest);  // longer ones are refused
        if (before < n_kinds) out.shared.push_back(static_cast<std::int32_t>(before * n_kinds + segment.kind));
        out.shared.push_back(static_cast<std::int32_t>(n_kinds * n_kinds + segment.kind * longest + length - 1));
        if (options_.with_segments)
            out.own[1][first_segment(n, s) + length - 1] = static_cast<std::int32_t>(segment.kind);
        before = segment.kind;
        s += segment.length;
    }
    if (!options_.with_ends || n == 0) return;
    const std::size_t ends = n_kinds * (n_kinds + longest);
    out.shared.push_back(static_cast<std::int32_t>(ends) + labels[0]);
    out.shared.push_back(static_cast<std::int32_t>(ends + n_labels_) + labels[n - 1]);
}

std::string SemiMarkovStructure::refusal(std::size_t example, const std::int32_t* labels) const {
    const std::size_t n = length(example), n_kinds = options_.n_kinds;
    std::size_t before = n_kinds;
    for (std::size_t s = 0; s < n;) {
        const Segment segment = segment_at(labels, n, s);
        const std::string at = "that begins at node " + std::to_string(s);
        if (!segment.is_whole) return "there is no segment " + at + ".";
        if (segment.length > static_cast<std::size_t>(options_.longest[segment.kind]))
            return "the segment " + at + " has " + std::to_string(segment.length) + " nodes, and may have " +
                   std::to_string(options_.longest[segment.kind]) + ".";
        if (before < n_kinds && options_.limits && options_.limits[before * n_kinds + segment.kind] != 0.0)
            return "the segment " + at + " may not follow the one before it.";
        before = segment.kind;
        s += segment.length;
    }
    return {};
}

}  // namespace dualfield
