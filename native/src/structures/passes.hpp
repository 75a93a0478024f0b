// Questions that are one pass over each example, or two: on several threads, each with a pass of its own.
#pragma once

#include <algorithm>
#include <vector>

#include "dualfield/core/parallel.hpp"
#include "dualfield/structures/structure.hpp"

namespace dualfield {

// Calls body(pass, i, row) for each example that has an answer after a pass up, i counted from the first of them and
// row of its first node in the view. A pass takes an example by begin(example, first example of the view, view).
// Examples without nodes have one labelling, of score 0.
template <class Pass, class OfStructure, class Body>
void for_examples(const OfStructure& structure, Examples examples, const ScoreView& view, std::size_t n_threads,
                  Status* statuses, bool sums, Body body) {
    n_threads = std::max<std::size_t>(1, std::min(n_threads, examples.size()));
    std::vector<Pass> passes;
    for (std::size_t i = 0; i < n_threads; ++i) passes.emplace_back(structure);
    parallel_for(examples.size(), n_threads, [&](std::size_t worker, std::size_t i) {
        Pass& pass = passes[worker];
        const std::size_t example = examples.first + i;
        pass.begin(example, examples.first, view);
        if (sums)
            pass.up_sum();
        else
            pass.up_max();
        statuses[i] = pass.status();
        if (statuses[i] == Status::ok) body(pass, i, structure.first(example) - structure.first(examples.first));
    });
}

}  // namespace dualfield
