// The block dual of examples that are read block by block: the ascent of dual_ascent.hpp on StreamedExamples.
#include "dualfield/solvers/streamed/streamed_dual.hpp"

#include <numeric>
#include <stdexcept>

#include "../dual/dual_ascent.hpp"
#include "dualfield/core/parallel.hpp"
#include "streamed_examples.hpp"

namespace dualfield {

LinearSolution solve_streamed_dual(const BlockSource& source, StateStore& store, const double* start,
                                   const BlockDualSettings& settings, const StreamSettings& streaming,
                                   const Callbacks& callbacks) {
    if (!(settings.l1_ratio >= 0.0 && settings.l1_ratio <= 1.0))
        throw std::invalid_argument("block_dual needs l1_ratio in [0, 1]");
    BlockStream blocks(source, store, streaming);
    const double sigma = proximal_weight(blocks.sums(), settings.l1_ratio);
    const SolverState* resume = callbacks.resume;
    const bool was_exact =
        resume && StateReader(*resume).find<std::uint64_t>("is_exact") == std::vector<std::uint64_t>{1};
    if (is_exact(blocks.sums(), settings.tolerance, settings.l1_ratio) || was_exact) {
        blocks.plan(&StreamedExamples<double>::state_bytes);
        StreamedExamples<double> data(blocks, settings.seed);
        DualAscent run(data, sigma, settings, callbacks);
        run.begin(start);
        return run.solve();
    }
    blocks.plan(&StreamedExamples<float>::state_bytes);
    StreamedExamples<float> data(blocks, settings.seed);
    DualAscent run(data, sigma, settings, callbacks);
    run.begin(start);
    const LinearSolution rough = run.solve();
    if (rough.outcome != Outcome::stalled) return rough;
    // Large weights can need more digits than single precision has.
    blocks.plan(&StreamedExamples<double>::state_bytes);
    StreamedExamples<double> exact_data(blocks, settings.seed);
    DualAscent exact(exact_data, sigma, settings, callbacks);
    exact.take_over(run);
    return exact.solve();
}

double streamed_loss(const BlockSource& source, const double* w, std::size_t n_threads) {
    std::vector<double> parts(source.n_blocks(), 0.0);
    parallel_for(parts.size(), n_threads, [&](std::size_t, std::size_t b) {
        const std::unique_ptr<LoadedBlock> block = source.load(b);
        parts[b] = Objective(block->problem(), 1).loss(w);
    });
    return std::accumulate(parts.begin(), parts.end(), 0.0);
}

}  // namespace dualfield
