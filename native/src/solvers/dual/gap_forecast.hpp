// When a gap will be small enough, if it falls on as it has between the last two looks at it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "dualfield/core/layout.hpp"

namespace dualfield {

class GapForecast {
  public:
    static constexpr double kNotFalling = 1e299;  // passes left where it does not: less than endless patience
    static constexpr std::size_t kLongestWait = 8;

    // `spacing`: looks count only where so many times the passes of the last one have gone by, for gaps that go up and
    // down on their way.
    void look(double gap, double passes, double spacing = 1.0) {
        if (passes == passes_) {  // the same place, more exactly
            gap_ = gap;
            return;
        }
        if (passes < spacing * passes_) return;
        gap_before_ = gap_;
        passes_before_ = passes_;
        gap_ = gap;
        passes_ = passes;
    }

    double passes_until(double small) const {
        if (!(gap_before_ < kInfinity) || !(gap_ > 0.0) || gap_ >= gap_before_) return kNotFalling;
        const double rate = std::log(gap_ / gap_before_) / (passes_ - passes_before_);
        return std::log(std::max(small, 1e-300) / gap_) / rate;
    }
    // A look costs a share of a pass: not at every one, and rather a little late than in vain.
    std::size_t passes_to_wait(double small) const {
        const double left = passes_until(small);
        return left < kNotFalling ? static_cast<std::size_t>(std::clamp(0.7 * left, 1.0, double{kLongestWait})) : 2;
    }
    // Whether more passes than `patience` are expected, twice in a row: one look can be misled.
    bool is_slow(double small, double patience) {
        constexpr double kFairTrial = 50.0;
        if (passes_ == judged_) return false;
        judged_ = passes_;
        n_slow_ = passes_ > kFairTrial && passes_until(small) > patience ? n_slow_ + 1 : 0;
        return n_slow_ >= 2;
    }

    template <class Archive>
    void describe(Archive& archive) {
        archive("gap", gap_);
        archive("gap_before", gap_before_);
        archive("gap_passes", passes_);
        archive("gap_passes_before", passes_before_);
        archive("gap_passes_judged", judged_);
        archive("n_slow", n_slow_);
    }

  private:
    double gap_ = kInfinity, gap_before_ = kInfinity, passes_ = 0.0, passes_before_ = 0.0, judged_ = 0.0;
    std::uint64_t n_slow_ = 0;
};

}  // namespace dualfield
