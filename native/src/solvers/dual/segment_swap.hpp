// Swaps of mass between two labellings of a chain of order 1, a better and a worse one.
//
// The two are cut into the segments on which they differ. Each segment gets a step of its own, exact along its line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sparse_flow.hpp"

namespace dualfield {

// Nodes [begin, end) of a chain of `length` nodes, the first of which has row `first`.
struct Segment {
    std::size_t first, length, begin, end;

    // The last node whose edge changes when the labels of the segment do.
    std::size_t last_edge() const { return std::min(end, length - 1); }
};

// Along the line of a swap: the slope of the dual, and the square of the direction in the space of weights.
struct SwapLine {
    double slope = 0.0, square = 0.0;

    double gain(double by) const { return by * (slope - 0.5 * by * square); }
};

struct LabellingPair {
    std::vector<std::uint32_t> better, worse;  // by node

    explicit LabellingPair(std::size_t longest) : better(longest), worse(longest) {}

    // Swaps the segments of a range on which the two differ, one after another: the sum of what swap(segment) returns.
    template <class Swap>
    double for_segments(const Segment& range, const Swap& swap) const {
        double gain = 0.0;
        for (std::size_t u = range.begin; u < range.end; ++u) {
            if (better[u] == worse[u]) continue;
            std::size_t end = u + 1;
            while (end < range.end && better[end] != worse[end]) ++end;
            gain += swap(Segment{range.first, range.length, u, end});
            u = end;
        }
        return gain;
    }

    // Calls use(clique, sign) for the cliques that touch a segment, as far as they have a weight: mask
    // [n_labels][n_labels].
    template <class Use>
    void for_cliques(const Segment& segment, const double* mask, std::size_t n_labels, const Use& use) const {
        for (std::size_t t = std::max<std::size_t>(segment.begin, 1); t <= segment.last_edge(); ++t) {
            const std::size_t up = better[t - 1] * n_labels + better[t], down = worse[t - 1] * n_labels + worse[t];
            if (mask[up] != 0.0) use(up, 1.0);
            if (mask[down] != 0.0) use(down, -1.0);
        }
    }

    // The share of an example of this weight that goes from the worse labels to the better ones: as much as the slope
    // wants, times the relaxation, and at most what is there.
    double step(const SparseFlow& flow, const Segment& segment, const SwapLine& line, double weight,
                double relaxation = 1.0) const {
        constexpr double kNoSlope = 1e-13;
        if (!(line.slope > kNoSlope)) return 0.0;
        double step = 1.0;
        for (std::size_t t = segment.begin; t <= segment.last_edge(); ++t)
            step = std::min(step, flow.mass(segment.first + t, before(worse, t), worse[t]));
        if (line.square > 0.0) step = std::min(step, relaxation * line.slope / (weight * line.square));
        return step;
    }
    void move(SparseFlow& flow, const Segment& segment, double step) const {
        for (std::size_t t = segment.begin; t <= segment.last_edge(); ++t) {
            flow.add(segment.first + t, before(worse, t), worse[t], -step);
            flow.add(segment.first + t, before(better, t), better[t], step);
        }
    }

  private:
    static std::uint32_t before(const std::vector<std::uint32_t>& labels, std::size_t t) {
        return t == 0 ? 0 : labels[t - 1];
    }
};

}  // namespace dualfield
