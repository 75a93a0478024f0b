// In which precision the dual points of the block dual are kept, and how strong its proximal term is.
#pragma once

#include <cstddef>

namespace dualfield {

// Tolerances from here on leave room for a state in single precision: half of the memory to move.
inline constexpr double kSingleFrom = 2e-6;
// The proximal weight beside the mean of c_i |A_i|^2.
inline constexpr double kProximal = 8e-3;
// Proximal weights outside of [1 / kHuge, kHuge] would not leave finite weights.
inline constexpr double kHuge = 1e100;

// Sums over all examples.
struct DataSums {
    std::size_t n_examples = 0;
    double weights = 0.0, square = 0.0;  // of c_i, and of the squares of all features
};

// None for squares alone, and where the ridge is as strong.
inline double proximal_weight(const DataSums& data, double l1_ratio) {
    if (l1_ratio == 0.0) return 0.0;
    const auto n = static_cast<double>(data.n_examples);
    const double square = data.square / n;
    double sigma = kProximal * (data.weights / n) * (square > 0.0 ? square : 1.0);
    if (!(sigma > 1.0 / kHuge && sigma < kHuge)) sigma = 1.0;
    return sigma > 1.0 - l1_ratio ? sigma : 0.0;
}

// Whether the state is kept in double precision. Rounded marginals leave noise in w, the more the weaker the ridge.
inline bool is_exact(const DataSums& data, double tolerance, double l1_ratio) {
    return tolerance < kSingleFrom || proximal_weight(data, l1_ratio) > 0.0;
}

// Vectors as long as w: w and what it follows from, and the same again where a bound is computed anew.
inline std::size_t n_weight_vectors(const DataSums& data, double l1_ratio) {
    return l1_ratio == 0.0 ? 2 : proximal_weight(data, l1_ratio) > 0.0 ? 8 : 4;
}

}  // namespace dualfield
