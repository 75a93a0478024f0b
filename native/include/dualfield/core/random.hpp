// Random numbers by stream: each example draws from a stream of its own, so that samples do not depend on threads or
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace dualfield {

// A counter passed through a 64-bit mixing function (splitmix64's), started from (seed, stream).
class RandomStream {
  public:
    RandomStream(std::uint64_t seed, std::uint64_t stream) : state_(mix(seed ^ mix(stream + kStep))) {}

    std::uint64_t next() { return mix(state_ += kStep); }

    // Uniform in [0, 1), 53 random bits.
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  private:
    static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15u;

    static std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }

    std::uint64_t state_;
};

// Puts entries in random order: all orders are equally likely.
template <class T>
void shuffle(std::vector<T>& entries, RandomStream& random) {
    for (std::size_t left = entries.size(); left > 1; --left)
        std::swap(entries[left - 1], entries[random.next() % left]);
}

// Index drawn with probability proportional to weights; the last one with weight guards against rounding.
inline std::size_t draw_index(std::span<const double> weights, double uniform) {
    double total = 0.0;
    for (const double w : weights) total += w;
    double left = uniform * total;
    std::size_t last = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i] <= 0.0) continue;
        last = i;
        left -= weights[i];
        if (left < 0.0) break;
    }
    return last;
}

}  // namespace dualfield
