// Which epochs visit only the examples that gained most at their last visit.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace dualfield {

// From this epoch on two of three are selective, and the examples that they visit have this share of all gains.
inline constexpr std::uint64_t kSelectFrom = 8, kFullEvery = 3;
inline constexpr double kSelectShare = 0.8;

inline bool is_selective(std::uint64_t epoch) {
    return epoch > kSelectFrom && epoch % kFullEvery != 0;
}

// Gains of any number of examples in fixed memory: their sums by size, 32 sizes to an octave.
class GainSums {
  public:
    GainSums() : sums_(std::size_t{1} << kBits, 0.0) {}

    // gain >= 0.
    void add(double gain) {
        sums_[place(gain)] += gain;
        total_ += gain;
    }
    // Examples that gained at least this much have kSelectShare of all gains, or a little more.
    double selected_gain() const {
        double sum = 0.0;
        for (std::size_t at = sums_.size(); at-- > 0;)
            if ((sum += sums_[at]) >= kSelectShare * total_ && sums_[at] > 0.0)
                return std::bit_cast<double>(static_cast<std::uint64_t>(at) << (63 - kBits));
        return 0.0;
    }

  private:
    static constexpr unsigned kBits = 16;  // of the exponent, 11, and of the mantissa
    static std::size_t place(double gain) {
        return static_cast<std::size_t>(std::bit_cast<std::uint64_t>(gain) >> (63 - kBits)) &
               ((std::size_t{1} << kBits) - 1);
    }

    std::vector<double> sums_;
    double total_ = 0.0;
};

}  // namespace dualfield
