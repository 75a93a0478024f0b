// Random numbers by stream: each example draws from a stream of its own, so that samples do not depend on threads or
// order.
#pragma once

#include <cstdint>

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

}  // namespace dualfield
