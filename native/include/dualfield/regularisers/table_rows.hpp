// Rows of log-probabilities: the nearest ones whose probabilities sum to at most one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dualfield {

// w with w + log w = z (Wright's omega function), to within a few units in the last place.
double wright_omega(double z);

// For each row i of [starts[i], starts[i + 1]) the Euclidean projection of target on
//   { theta : sum_j exp(theta_j) <= 1, theta_j >= floor }:
// theta_j = max(floor, target_j - omega(target_j + log nu)), nu[i] >= 0 the multiplier of the sum, 0 where it is slack.
void project_rows(const double* target, const std::int64_t* starts, std::size_t n_rows, double floor,
                  std::size_t n_threads, double* theta, double* nu);

}  // namespace dualfield
