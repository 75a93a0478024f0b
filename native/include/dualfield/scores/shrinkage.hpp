// Weights that follow from dual ones: w = sign(v) max(|v| - lasso, 0) / ridge, coordinate by coordinate.
#pragma once

#include <cstddef>

namespace dualfield {

// The gradient of the conjugate of the elastic net, ridge / 2 |w|^2 + lasso |w|_1. A move changes v and brings w up to
// date; the conjugate at v is ridge / 2 |w|^2.
struct Shrinkage {
    std::ptrdiff_t to_dual;  // from a weight w_j to v_j, in numbers
    double lasso, ridge;
};

}  // namespace dualfield
