// Exponentials without denormal numbers.
#pragma once

#include <cmath>

namespace dualfield {

// Numbers so small would be denormal after the next product, and slow: they are zero.
inline double exp_or_zero(double x) {
    return x < -690.0 ? 0.0 : std::exp(x);
}

}  // namespace dualfield
