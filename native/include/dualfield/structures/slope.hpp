// How marginals change when scores move: the covariances of parts, a direction at a time.
//
//   d mu / d epsilon at theta + epsilon v  =  Cov(u) v  =  E[u <v, u>] - mu <v, mu>,      d M_1 / d epsilon = <v, mu>
//
// Every structure writes its distribution as a product of conditional probabilities, each given what was drawn before
// it. Of a direction two passes are left: expectations of <v, u> against the order of the draws, and changes of the
// probabilities along it. All of their numbers are probabilities times entries of v, so that nothing overflows, however
// far apart the scores are.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "dualfield/structures/structure.hpp"

namespace dualfield {

// One example after another. Has memory that it reuses; one for each thread.
class Slope {
  public:
    virtual ~Slope() = default;
    // Takes an example with scores of its own, which may change afterwards.
    virtual Status begin(std::size_t example, const ScoreView& scores) = 0;
    // The change of all sums along a direction, which is multiplied by its inverse temperature as scores are; returns
    // that of the log-partition. For any number of directions, if begin said ok.
    virtual double derive(const ScoreView& direction, const PartSums& change) = 0;
    // Adds scale times the covariances of all parts of the example to out [n][n]: own parts table by table, then shared
    // ones. By as many directions as there are parts.
    virtual void add_covariance(const PartLayout& layout, std::size_t example, double scale, double* out);

  private:
    std::vector<double> unit_, column_;
};

// For structures that list their cliques (Structure::list_junction).
std::unique_ptr<Slope> junction_slope(const Structure& structure);

}  // namespace dualfield
