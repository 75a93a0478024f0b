// Half the squared norm of the weights.
#pragma once

#include <span>

namespace dualfield {

inline double half_square(std::span<const double> weights) {
    double sum = 0.0;
    for (const double w : weights) sum += w * w;
    return 0.5 * sum;
}

}  // namespace dualfield
