// Examples of blocks that are read one after another, for the ascent of dual_ascent.hpp.
//
// A sweep takes the blocks in a new random order, and the examples of a few blocks together in random order. What is
// kept for a block is theta, mu and the value of its points, the length of their steps, and what they gained last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "../dual/selection.hpp"
#include "../dual/soft_examples.hpp"
#include "block_stream.hpp"
#include "dualfield/core/random.hpp"

namespace dualfield {

// S: float or double, the precision in which the state is kept.
template <class S>
class StreamedExamples {
  public:
    StreamedExamples(BlockStream& blocks, std::uint64_t seed)
        : blocks_(blocks), seed_(seed), n_lengthened_(blocks.n_blocks(), 0) {}

    static std::size_t state_bytes(const BlockSizes& sizes) { return StateLayout(sizes).bytes; }

    std::size_t size() const { return blocks_.size(); }
    double loss(const double* w) {
        std::vector<double> parts(blocks_.n_blocks(), 0.0);
        blocks_.look([&](VisitedBlock& block) { parts[block.number] = block.objective().loss(w); });
        return std::accumulate(parts.begin(), parts.end(), 0.0);
    }

    // Blocks without a state are there already.
    void begin_at_truth() {
        if (is_begun_) in_order(true, [](Block& block) { block.begin_at_truth(); });
    }
    void begin_at(const DualWeights& weights) {
        is_begun_ = true;
        in_order(true, [&](Block& block) {
            for (const std::size_t i : block.order) block.examples.begin_at(i, weights);
        });
    }
    // Begins where a state in another precision stands, in the same blocks.
    template <class Other>
    void take_over(StreamedExamples<Other>&) {
        const std::vector<std::size_t> order = blocks_.every_block();
        blocks_.visit(order, [&](BlockStream::Blocks group) {
            for (VisitedBlock* block : group) {
                const BlockSizes& sizes = blocks_.sizes(block->number);
                std::vector<std::byte> before(StateLayout(sizes).bytes);
                before.swap(block->state);
                using Before = typename StreamedExamples<Other>::StateLayout;
                if (before.size() != Before(sizes).bytes) throw StateError("the state of a block has another size");
                const std::size_t n_doubles = 3 * sizes.n_examples;
                std::copy_n(before.data(), n_doubles * sizeof(double), block->state.data());
                const auto* from = reinterpret_cast<const Other*>(before.data() + n_doubles * sizeof(double));
                auto* to = reinterpret_cast<S*>(block->state.data() + n_doubles * sizeof(double));
                std::copy_n(from, 2 * (sizes.n_own + sizes.n_shared), to);
                block->is_changed = true;
            }
            return true;
        });
        is_begun_ = true;
    }

    // One epoch. `heard(gain)` is called after each visit, and false ends the sweep.
    template <class Heard>
    void sweep(std::uint64_t epoch, DualWeights& weights, double& passes, const Heard& heard) {
        RandomStream random(seed_, epoch);
        std::vector<std::size_t> order = blocks_.every_block();
        shuffle(order, random);
        const double least = is_selective(epoch) ? least_gain_ : 0.0;
        const double share = 1.0 / static_cast<double>(blocks_.n_examples());
        GainSums gains;
        std::vector<std::uint64_t> visits;  // of a group: the place of a block in it, and an example
        blocks_.visit(order, [&](BlockStream::Blocks group) {
            std::vector<std::optional<Block>> opened(group.size());
            visits.clear();
            for (std::size_t k = 0; k < group.size(); ++k) {
                opened[k].emplace(*this, *group[k]);
                for (const std::size_t i : opened[k]->order)
                    if (opened[k]->gain[i] >= least) visits.push_back(std::uint64_t{k} << 32 | i);
            }
            shuffle(visits, random);
            for (VisitedBlock* block : group) block->is_changed = true;
            bool goes_on = true;
            for (std::size_t at = 0; at < visits.size() && goes_on; ++at) {
                if (at + 1 < visits.size()) opened[visits[at + 1] >> 32]->examples.prefetch(example(visits[at + 1]));
                Block& block = *opened[visits[at] >> 32];
                const std::size_t i = example(visits[at]);
                block.gain[i] = block.examples.visit(i, weights, share, passes);
                goes_on = heard(block.gain[i]);
            }
            for (const auto& block : opened)
                for (const std::size_t i : block->order) gains.add(block->gain[i]);
            return goes_on;
        });
        least_gain_ = gains.selected_gain();
    }

    double rebuild(DualWeights& anew) {
        double sum = 0.0;
        in_order(true, [&](Block& block) {
            for (const std::size_t i : block.order) sum += block.examples.settle(i, anew);
        });
        return sum;
    }
    double exact_values(DualWeights& anew) {
        double sum = 0.0;
        in_order(false, [&](Block& block) {
            for (const std::size_t i : block.order) sum += block.examples.exact_value(i, anew);
        });
        return sum;
    }
    void lengthen_steps(double least) {
        ++n_lengthenings_;
        least_step_ = least;
    }

    template <class Archive>
    void describe(Archive& archive) {
        archive("least_gain", least_gain_);
        archive("n_lengthened", n_lengthened_);
        archive("n_lengthenings", n_lengthenings_);
        archive("least_step", least_step_);
        std::uint64_t is_exact = sizeof(S) == sizeof(double);
        archive("is_exact", is_exact);
        exchange(archive);
    }

  private:
    template <class Other>
    friend class StreamedExamples;

    struct StateLayout {
        explicit StateLayout(const BlockSizes& sizes)
            : n(sizes.n_examples),
              n_own(sizes.n_own),
              n_shared(sizes.n_shared),
              // Doubles first, so that all are aligned.
              bytes(3 * n * sizeof(double) + 2 * (n_own + n_shared) * sizeof(S)) {}
        std::size_t n, n_own, n_shared, bytes;
    };

    // A block whose state is laid out, and begun where it has none.
    struct Block {
        Block(StreamedExamples& all, VisitedBlock& block)
            : examples(block.problem(), block.objective().truth(), open(block, all.blocks_.sizes(block.number))) {
            for (std::size_t i = 0; i < block.problem().n_examples(); ++i)
                if (block.problem().length(i) > 0) order.push_back(i);
            if (is_new) begin_at_truth();
            std::uint64_t& lengthened = all.n_lengthened_[block.number];
            if (lengthened < all.n_lengthenings_) examples.points().lengthen_steps(all.least_step_);
            lengthened = all.n_lengthenings_;
        }

        void begin_at_truth() {
            std::fill(eta.begin(), eta.end(), 1.0);
            std::fill(gain.begin(), gain.end(), 0.0);
            examples.points().begin_at_truth();
        }

        std::span<double> gain, eta;
        std::vector<std::size_t> order;
        bool is_new = false;
        SoftExamples<S> examples;

      private:
        SoftState<S> open(VisitedBlock& block, const BlockSizes& sizes) {
            const StateLayout layout(sizes);
            is_new = block.state.empty();
            if (is_new) block.state.resize(layout.bytes);
            if (block.state.size() != layout.bytes) throw StateError("the state of a block has another size");
            auto* numbers = reinterpret_cast<double*>(block.state.data());
            const std::size_t n = layout.n;
            const std::span<double> value(numbers, n);
            eta = {numbers + n, n};
            gain = {numbers + 2 * n, n};
            auto* points = reinterpret_cast<S*>(numbers + 3 * n);
            const std::size_t own = layout.n_own, shared = layout.n_shared;
            return {{points, own},
                    {points + own, own},
                    {points + 2 * own, shared},
                    {points + 2 * own + shared, shared},
                    value,
                    eta};
        }
    };

    static std::size_t example(std::uint64_t visit) { return static_cast<std::size_t>(visit & 0xffffffffu); }

    // All blocks one after another.
    template <class Use>
    void in_order(bool changes, const Use& use) {
        const std::vector<std::size_t> order = blocks_.every_block();
        blocks_.visit(order, [&](BlockStream::Blocks group) {
            for (VisitedBlock* block : group) {
                Block opened(*this, *block);
                use(opened);
                block->is_changed |= changes;
            }
            return true;
        });
    }

    void exchange(StateWriter& writer) { writer("places", blocks_.keep()); }
    void exchange(const StateReader& reader) { blocks_.restore(reader.find<std::uint64_t>("places")); }

    BlockStream& blocks_;
    std::uint64_t seed_;
    std::vector<std::uint64_t> n_lengthened_;  // [n_blocks]: how often steps were, when the block was seen last
    std::uint64_t n_lengthenings_ = 0;
    double least_gain_ = 0.0, least_step_ = 0.0;
    bool is_begun_ = false;
};

}  // namespace dualfield
