// Sequences cut into segments, each of one kind: semi-Markov models (Sarawagi and Cohen 2004).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dualfield/structures/structure.hpp"

namespace dualfield {

// The labels of the nodes say where segments are: a segment of kind j has the label begin_j, then inside_j as often as
// needed, then end_j; a segment of one node has single_j. Roles may share a label: in BIO begin is single and inside
// is end. A label belongs to one kind only.
//
//   score(y) = sum_t node[t][y_t] + sum over segments (duration[kind][length] + own[first, length][kind])
//              + sum over neighbouring segments transition[kind before][kind] + first[y_0] + last[y_{n-1}]; -inf
//              forbids.
//
// Own parts: a row of K labels for each node; where segments have scores of their own, a row of J kinds for each
// segment, those that begin at the first node first, the shorter ones first. Shared parts: J x J transitions, J x L
// durations, and where ends have scores K labels of the first node and K of the last one.
class SemiMarkovStructure final : public Structure {
  public:
    enum Role : std::size_t { kBegin, kInside, kEnd, kSingle, kRoles };
    struct Options {
        std::size_t n_kinds = 1, max_length = 1;
        const std::int32_t* roles = nullptr;    // [J][4]: labels of begin, inside, end, single; -1: there is none
        const std::int32_t* longest = nullptr;  // [J]: nodes of the longest segment of a kind, at most max_length
        const double* limits = nullptr;         // [J][J]: 0, or -inf for kinds that may not follow each other; or null
        bool with_segments = false, with_ends = false;
    };
    // All must outlive the structure.
    SemiMarkovStructure(std::size_t n_labels, std::span<const std::int64_t> offsets, const Options& options);

    std::size_t n_labels() const override { return n_labels_; }
    void log_partition(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void marginals(Examples, const ScoreView&, std::size_t n_threads, const PartSums&, double* out,
                   Status*) const override;
    void maximum(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    // Among equals the one whose last segment is of the lowest kind, then the shortest, then the one before it.
    void argmax(Examples, const ScoreView&, std::size_t n_threads, std::int32_t* labels, Status*) const override;
    void list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const override;
    void max_marginals(Examples, const ScoreView&, std::size_t n_threads, double* own, Status*) const override;
    void entropy(Examples, const ScoreView&, std::size_t n_threads, double* out, Status*) const override;
    void sample(Examples, const ScoreView&, std::size_t n_threads, std::size_t n_samples, std::uint64_t seed,
                std::int32_t* labels, Status*) const override;
    std::string refusal(std::size_t example, const std::int32_t* labels) const override;
    std::unique_ptr<Block> block() const override;
    std::unique_ptr<Slope> slope() const override;

    // The rows of segments that an example of n nodes has, and the first of those that begin at a node.
    std::size_t n_segments(std::size_t n_nodes) const { return first_segment(n_nodes, n_nodes); }
    std::size_t first_segment(std::size_t n_nodes, std::size_t node) const;

  private:
    class Pass;
    class OneSequence;
    class OneSlope;
    struct Segment {
        std::size_t first, length, kind;
        bool is_whole;  // false: the labels are none that a segment has
    };
    // The segment that begins at a node.
    Segment segment_at(const std::int32_t* labels, std::size_t n_nodes, std::size_t first) const;
    std::int32_t role(std::size_t kind, Role which) const { return options_.roles[kind * kRoles + which]; }
    void write(const Segment& segment, std::int32_t* labels) const;

    std::size_t n_labels_;
    const Options options_;
    std::vector<std::int32_t> kind_of_;          // [K]
    std::vector<std::int64_t> segment_offsets_;  // [n + 1]
};

}  // namespace dualfield
