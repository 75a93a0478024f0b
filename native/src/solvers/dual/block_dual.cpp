// The block dual of a problem in memory: see dual_ascent.hpp.
#include "dualfield/solvers/dual/block_dual.hpp"

#include <numeric>
#include <stdexcept>

#include "dual_ascent.hpp"
#include "held_examples.hpp"
#include "state_precision.hpp"

namespace dualfield {
namespace {

DataSums sums_of(const Problem& problem, double l1_ratio) {
    return {problem.n_examples(), std::accumulate(problem.weights, problem.weights + problem.n_examples(), 0.0),
            l1_ratio > 0.0 ? problem.scores->square() : 0.0};
}

}  // namespace

std::size_t block_dual_bytes(const Problem& problem, double tolerance, double l1_ratio) {
    const PartLayout& parts = problem.structure->parts();
    const DataSums sums = sums_of(problem, l1_ratio);
    const std::size_t precision = is_exact(sums, tolerance, l1_ratio) ? sizeof(double) : sizeof(float);
    return 2 * precision * (parts.own_begin(problem.n_examples()) + problem.n_examples() * parts.n_shared) +
           n_weight_vectors(sums, l1_ratio) * sizeof(double) * problem.size();
}

LinearSolution solve_block_dual(const Problem& problem, const double* start, const BlockDualSettings& settings,
                                const Callbacks& callbacks) {
    if (problem.allowed || !(problem.temperature > 0.0) || !(settings.l1_ratio >= 0.0 && settings.l1_ratio <= 1.0))
        throw std::invalid_argument("block_dual needs all labels, a temperature above zero and l1_ratio in [0, 1]");
    const SolverState* resume = callbacks.resume;
    const bool was_exact = resume && resume->contains("theta") && resume->at("theta").index() == 1;
    const DataSums sums = sums_of(problem, settings.l1_ratio);
    const double sigma = proximal_weight(sums, settings.l1_ratio);
    if (is_exact(sums, settings.tolerance, settings.l1_ratio) || was_exact) {
        HeldExamples<double> data(problem, settings.seed, settings.n_threads);
        DualAscent run(data, sigma, settings, callbacks);
        run.begin(start);
        return run.solve();
    }
    HeldExamples<float> data(problem, settings.seed, settings.n_threads);
    DualAscent run(data, sigma, settings, callbacks);
    run.begin(start);
    const LinearSolution rough = run.solve();
    if (rough.outcome != Outcome::stalled) return rough;
    // Large weights can need more digits than single precision has.
    HeldExamples<double> exact_data(problem, settings.seed, settings.n_threads);
    DualAscent exact(exact_data, sigma, settings, callbacks);
    exact.take_over(run);
    return exact.solve();
}

}  // namespace dualfield
