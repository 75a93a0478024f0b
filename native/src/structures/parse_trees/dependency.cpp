// Projective dependency trees: the layout of their parts, and the questions, by passes over each sentence
// (dependency_pass.hpp).
#include "dualfield/structures/parse_trees/dependency.hpp"

#include <algorithm>
#include <cmath>

#include "../passes.hpp"
#include "dependency_best.hpp"
#include "dependency_pass.hpp"
#include "dualfield/core/random.hpp"

namespace dualfield {

DependencyStructure::DependencyStructure(std::size_t n_labels, std::span<const std::int64_t> offsets, bool is_single)
    : n_labels_(n_labels), is_single_(is_single) {
    label_offsets_ = offsets;
    parts_.tables.push_back({n_labels, offsets, offsets.first(offsets.size() - 1)});
}

std::size_t DependencyStructure::n_words(std::size_t n_arcs) {
    auto n = static_cast<std::size_t>(std::sqrt(static_cast<double>(n_arcs)));
    while (n * n > n_arcs) --n;
    while ((n + 1) * (n + 1) <= n_arcs) ++n;
    return n;
}

void DependencyStructure::log_partition(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                        Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true,
                       [&](const Pass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

void DependencyStructure::maximum(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                  Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](const Pass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

void DependencyStructure::marginals(Examples examples, const ScoreView& view, std::size_t n_threads,
                                    const PartSums& sums, double* out, Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true,
                       [&](Pass& pass, std::size_t i, std::size_t first_row) {
                           out[i] = pass.total();
                           pass.down_sum();
                           pass.spread(sums.own[0] + first_row * n_labels_);
                       });
}

void DependencyStructure::argmax(Examples examples, const ScoreView& view, std::size_t n_threads, std::int32_t* labels,
                                 Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](Pass& pass, std::size_t, std::size_t first_row) { pass.decode(labels + first_row); });
}

void DependencyStructure::max_marginals(Examples examples, const ScoreView& view, std::size_t n_threads, double* own,
                                        Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](Pass& pass, std::size_t, std::size_t first_row) {
                           pass.down_max();
                           pass.spread_max(own + first_row * n_labels_);
                       });
}

void DependencyStructure::entropy(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                  Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true, [&](Pass& pass, std::size_t i, std::size_t) {
        pass.down_sum();
        out[i] = pass.entropy();
    });
}

void DependencyStructure::sample(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t n_samples,
                                 std::uint64_t seed, std::int32_t* labels, Status* statuses) const {
    const std::size_t stride = first(examples.last) - first(examples.first);
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true,
                       [&](Pass& pass, std::size_t i, std::size_t first_row) {
                           RandomStream random(seed, examples.first + i);
                           for (std::size_t s = 0; s < n_samples; ++s)
                               pass.draw([&] { return random.uniform(); }, labels + s * stride + first_row);
                       });
}

void DependencyStructure::k_best(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t k,
                                 std::int32_t* labels, double* scores, Status* statuses) const {
    const std::size_t stride = first(examples.last) - first(examples.first);
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](const Pass& pass, std::size_t i, std::size_t first_row) {
                           Best best(pass);
                           for (std::size_t r = 0; r < k; ++r)
                               scores[i * k + r] = best.next(labels + r * stride + first_row);
                       });
}

// One sentence after another, in the memory of one pass.
class DependencyStructure::OneSentence final : public Block {
  public:
    explicit OneSentence(const DependencyStructure& structure) : pass_(structure) {}

    Answer marginals(std::size_t example, const ScoreView& scores, const PartSums& sums) override {
        pass_.begin(example, example, scores);
        pass_.up_sum();
        if (pass_.status() == Status::ok) {
            pass_.down_sum();
            pass_.spread(sums.own[0]);
        }
        return {pass_.total(), pass_.status()};
    }
    Answer best(std::size_t example, const ScoreView& scores, std::int32_t* labels) override {
        pass_.begin(example, example, scores);
        pass_.up_max();
        if (pass_.status() == Status::ok) pass_.decode(labels);
        return {pass_.total(), pass_.status()};
    }

  private:
    Pass pass_;
};

std::unique_ptr<Block> DependencyStructure::block() const {
    return std::make_unique<OneSentence>(*this);
}

void DependencyStructure::list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const {
    out.own[0].assign(labels, labels + length(example));
    out.own[1].clear();
    out.shared.clear();
}

std::string DependencyStructure::refusal(std::size_t example, const std::int32_t* labels) const {
    const std::size_t n = n_words(length(example));
    std::vector<std::int32_t> heads(n, -1);
    for (std::size_t child = 0; child < n; ++child)
        for (std::size_t head = 0; head <= n; ++head) {
            if (head == child + 1 || labels[row(n, head, child)] == 0) continue;
            if (heads[child] >= 0)
                return "word " + std::to_string(child + 1) + " has two heads, " + std::to_string(heads[child]) +
                       " and " + std::to_string(head) + ".";
            heads[child] = static_cast<std::int32_t>(head);
        }
    return refusal_of_heads(heads, is_single_);
}

std::string DependencyStructure::refusal_of_heads(std::span<const std::int32_t> heads, bool is_single, bool* crosses) {
    const std::size_t n = heads.size();
    const auto word = [](std::size_t t) { return "word " + std::to_string(t); };
    const auto head = [&](std::size_t t) { return static_cast<std::size_t>(heads[t - 1]); };
    std::size_t root = 0;
    for (std::size_t t = 1; t <= n; ++t) {
        if (heads[t - 1] < 0 || head(t) > n) return word(t) + " has no head.";
        if (is_single && head(t) == 0 && root > 0)
            return word(root) + " and " + word(t) + " are both below the root, which has one child.";
        if (head(t) == 0) root = t;
    }
    // A walk upwards that meets a word of its own is on a cycle.
    std::vector<std::size_t> walk_of(n + 1, 0);
    for (std::size_t t = 1; t <= n; ++t) {
        std::size_t at = t;
        while (at > 0 && walk_of[at] == 0) {
            walk_of[at] = t;
            at = head(at);
        }
        if (at > 0 && walk_of[at] == t) return word(at) + " is above itself: heads make a cycle.";
    }
    // Arcs cross where one has an end inside of another, and its other end outside of it.
    for (std::size_t t = 1; t <= n; ++t) {
        const std::size_t low = std::min(t, head(t)), high = std::max(t, head(t));
        for (std::size_t inner = low + 1; inner < high; ++inner)
            if (head(inner) < low || head(inner) > high) {
                if (crosses) *crosses = true;
                return "the arcs " + std::to_string(head(t)) + " to " + std::to_string(t) + " and " +
                       std::to_string(head(inner)) + " to " + std::to_string(inner) + " cross.";
            }
    }
    return {};
}

}  // namespace dualfield
