// Visits of chains whose dual points at temperature zero are sparse flows, on weights that others share.
//
// A visit takes the best labelling (with the cost of wrong labels) and the worst one that has mass, cuts them into the
// segments on which they differ, and gives each segment a step of its own, exact along its line: the moves of
// flow_swap.cpp, on the vector of all weights instead of lists that would have to be made anew for every block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "../dual/chain_flow.hpp"
#include "../dual/flow_paths.hpp"
#include "../dual/segment_swap.hpp"
#include "dualfield/core/buffer.hpp"
#include "dualfield/structures/chains/chain.hpp"
#include "dualfield/structures/chains/chain_block.hpp"

namespace dualfield {

class FlowVisits {
  public:
    // The structure must be a chain of order 1 without own edges. All must outlive this.
    FlowVisits(const Problem& problem, ChainFlow& flow)
        : problem_(problem),
          chain_(*problem.structure->chain()),
          map_(*problem.scores),
          flow_(flow),
          n_labels_(chain_.n_labels()),
          begin_(map_.shared_begin()),
          block_(chain_.topology(), chain_.start_limits(), chain_.stop_limits()),
          shared_change_(problem.structure->parts().n_shared, 0.0),
          pair_(problem.longest()) {
        for (Buffer* buffer : {&scores_, &change_})
            buffer->require(checked_product(pair_.better.size(), n_labels_) + kLanes);
        scratch_.require(map_.scratch_size());
    }

    // Moves the flow of an example and w; returns what the dual gains.
    double visit(std::size_t i, double* w) {
        const std::size_t length = problem_.length(i);
        double gained = 0.0;
        score(i, 0, length, w);
        for (int repeat = 0; repeat < kDenseRepeats; ++repeat) {
            viterbi_.resize(length);
            if (block_.best(scores_.data(), length, w + begin_, viterbi_.data()).status != Status::ok)
                throw std::runtime_error(
                    "The scores of an example are not finite any more: the features are too large.");
            find_paths(i, w);
            std::copy(viterbi_.begin(), viterbi_.end(), pair_.better.begin());
            const double gain = swap_all(i, w, 1.0);
            gained += gain;
            if (gain == 0.0) break;
        }
        for (int repeat = 0; repeat < kSparseRepeats && is_open(i); ++repeat) {
            find_paths(i, w);
            const double gain = swap_all(i, w, repeat + 1 == kSparseRepeats ? kLonger : 1.0);
            gained += gain;
            if (gain == 0.0) break;
        }
        return gained;
    }

    // w += c_i A_i' (u_i - mu_i).
    void add(std::size_t i, double* w) {
        const std::size_t length = problem_.length(i);
        std::fill_n(change_.data(), length * n_labels_, 0.0);
        bool differs = false;
        flow_.for_difference(i, [&](std::size_t t, std::uint32_t from, std::uint32_t to, double mass) {
            differs = true;
            change_.data()[t * n_labels_ + to] += mass;
            if (t > 0) change_shared(from * n_labels_ + to, mass);
            change_ends(t, length, to, mass);
        });
        if (differs) move(problem_.first(i), problem_.first(i + 1), problem_.weights[i], w);
        clear_shared();
    }

  private:
    static constexpr int kDenseRepeats = 2, kSparseRepeats = 3;
    static constexpr double kLonger = 1.7;  // than the best step along a line: sweeps of small steps are faster so
    static constexpr double kNoSlope = 1e-13;

    double cost(std::size_t row, std::size_t label) const {
        return problem_.cost ? problem_.cost[static_cast<std::size_t>(problem_.labels[row]) * n_labels_ + label] : 0.0;
    }
    bool is_open(std::size_t i) const {
        for (std::size_t row = problem_.first(i); row < problem_.first(i + 1); ++row)
            if (flow_.edges(row).size() > 1) return true;
        return false;
    }

    // Scores of nodes [from, to) of an example, with costs and those of the ends.
    void score(std::size_t i, std::size_t from, std::size_t to, const double* w) {
        const std::size_t first = problem_.first(i), length = problem_.length(i);
        double* scores = scores_.data();
        map_.score_nodes(w, first + from, first + to, scores + from * n_labels_, scratch_.data());
        for (std::size_t t = from; t < to && problem_.cost; ++t)
            for (std::size_t k = 0; k < n_labels_; ++k) scores[t * n_labels_ + k] += cost(first + t, k);
        if (!chain_.with_ends()) return;
        for (std::size_t k = 0; k < n_labels_; ++k) {
            if (from == 0) scores[k] += w[begin_ + chain_.start_begin() + k];
            if (to == length) scores[(length - 1) * n_labels_ + k] += w[begin_ + chain_.stop_begin() + k];
        }
    }
    void find_paths(std::size_t i, const double* w) {
        const std::size_t length = problem_.length(i);
        paths_.find(flow_, problem_.first(i), length, 0, length, scores_.data(), w + begin_, n_labels_);
        paths_.trace(pair_.better, pair_.worse);
    }
    double swap_all(std::size_t i, double* w, double relaxation) {
        const std::size_t length = problem_.length(i);
        return pair_.for_segments({problem_.first(i), length, 0, length},
                                  [&](const Segment& segment) { return swap(i, segment, w, relaxation); });
    }

    void change_shared(std::size_t part, double by) {
        if (shared_change_[part] == 0.0) touched_.push_back(part);
        shared_change_[part] += by;
    }
    void change_ends(std::size_t t, std::size_t length, std::uint32_t label, double by) {
        if (!chain_.with_ends()) return;
        if (t == 0) change_shared(chain_.start_begin() + label, by);
        if (t + 1 == length) change_shared(chain_.stop_begin() + label, by);
    }
    void clear_shared() {
        for (const std::size_t part : touched_) shared_change_[part] = 0.0;
        touched_.clear();
    }
    // w += scale * (what has changed at rows [first, last), in change_ and shared_change_); returns how much |w|^2 / 2
    // grows. A part may be listed twice, where it was zero in between.
    double move(std::size_t first, std::size_t last, double scale, double* w) {
        double grown = map_.move_nodes(first, last, change_.data(), scale, w, scratch_.data());
        std::sort(touched_.begin(), touched_.end());
        touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
        for (const std::size_t part : touched_) {
            const double by = scale * shared_change_[part] * map_.shared_mask()[part];
            grown += by * (w[begin_ + part] + 0.5 * by);
            w[begin_ + part] += by;
        }
        return grown;
    }

    // Moves mass from the worse labels of a segment to the better ones; returns what the dual gains.
    double swap(std::size_t i, const Segment& segment, double* w, double relaxation) {
        const std::size_t row = segment.first + segment.begin, n = segment.end - segment.begin;
        const double weight = problem_.weights[i];
        score(i, segment.begin, segment.end, w);
        std::fill_n(change_.data(), n * n_labels_, 0.0);
        double slope = 0.0, paid = 0.0;
        for (std::size_t t = segment.begin; t < segment.end; ++t) {
            const std::uint32_t better = pair_.better[t], worse = pair_.worse[t];
            const double* scores = scores_.data() + t * n_labels_;
            slope += scores[better] - scores[worse];
            paid += cost(segment.first + t, better) - cost(segment.first + t, worse);
            change_.data()[(t - segment.begin) * n_labels_ + better] = 1.0;
            change_.data()[(t - segment.begin) * n_labels_ + worse] = -1.0;
            change_ends(t, segment.length, better, 1.0);
            change_ends(t, segment.length, worse, -1.0);
        }
        pair_.for_cliques(segment, map_.shared_mask(), n_labels_, [&](std::size_t clique, double sign) {
            slope += sign * w[begin_ + clique];
            change_shared(clique, sign);
        });
        const double most = pair_.step(flow_, segment, {slope, 0.0}, weight);
        double gain = 0.0;
        if (most > 0.0) {
            // The whole mass first, which tells the curvature; what is too much goes back.
            const double by = weight * most, grown = move(row, row + n, -by, w);
            const double square = 2.0 * (grown + by * (slope - paid)) / (by * by);
            const double step = pair_.step(flow_, segment, {slope, std::max(square, 0.0)}, weight, relaxation);
            if (step < most) move(row, row + n, weight * (most - step), w);
            pair_.move(flow_, segment, step);
            gain = weight * step * (slope - 0.5 * weight * step * square);
            score(i, segment.begin, segment.end, w);
        }
        clear_shared();
        return gain;
    }

    const Problem& problem_;
    const ChainStructure& chain_;
    const ScoreMap& map_;
    ChainFlow& flow_;
    std::size_t n_labels_, begin_;  // of the shared parts in w
    ChainBlock block_;
    FlowPaths paths_;
    std::vector<double> shared_change_;
    std::vector<std::size_t> touched_;
    LabellingPair pair_;
    Buffer scores_, change_, scratch_;
    std::vector<std::int32_t> viterbi_;
};

}  // namespace dualfield
