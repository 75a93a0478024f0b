// Blocks of examples that go through memory: states on disk, faults of readers, and solvers that do not see the limit.
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <vector>

#include "check.hpp"
#include "dualfield/solvers/dual/block_dual.hpp"
#include "dualfield/solvers/dual/flow_swap.hpp"
#include "dualfield/solvers/streamed/streamed_dual.hpp"
#include "dualfield/streaming/state_file.hpp"
#include "dualfield/structures/chains/chain.hpp"

using namespace dualfield;

namespace {

constexpr std::size_t kLabels = 3, kColumns = 12, kSentences = 40, kPerBlock = 4;

// Sentences of words, as sparse rows with one column each.
struct Sentences {
    std::vector<std::int32_t> windows, labels, words;
    std::vector<std::uint8_t> allowed;
    std::vector<std::int64_t> offsets{0}, indptr{0}, outputs_begin;
    std::vector<std::int32_t> outputs;
    std::vector<double> mask, weights, cost;
    std::optional<ChainTopology> topology;
    std::optional<LinearMap> node;
    double temperature;

    explicit Sentences(double t) : temperature(t) {
        std::mt19937 generator(5);
        for (std::int32_t a = 0; a < 3; ++a)
            for (std::int32_t b = 0; b < 3; ++b) windows.insert(windows.end(), {a, b});
        allowed.assign(kLabels * kLabels, 1);
        topology.emplace(kLabels, 1, windows, allowed);
        for (std::size_t c = 0; c <= kColumns; ++c) outputs_begin.push_back(static_cast<std::int64_t>(c * kLabels));
        for (std::size_t j = 0; j < kColumns * kLabels; ++j) outputs.push_back(static_cast<std::int32_t>(j % kLabels));
        node.emplace(kLabels, outputs_begin, outputs);
        mask.assign(kLabels * kLabels, 1.0);
        weights.assign(kSentences, 0.7);
        for (std::size_t j = 0; j < kLabels * kLabels; ++j) cost.push_back(j % (kLabels + 1) == 0 ? 0.0 : 1.0);
        for (std::size_t i = 0; i < kSentences; ++i) {
            offsets.push_back(offsets.back() + 1 + static_cast<std::int64_t>(generator() % 6));
            while (words.size() < static_cast<std::size_t>(offsets.back())) {
                words.push_back(static_cast<std::int32_t>(generator() % kColumns));
                labels.push_back(generator() % 4 ? words.back() % 3 : static_cast<std::int32_t>(generator() % 3));
                indptr.push_back(static_cast<std::int64_t>(words.size()));
            }
        }
    }
};

class SomeSentences final : public LoadedBlock {
  public:
    SomeSentences(const Sentences& all, std::size_t first, std::size_t last) {
        const std::int64_t begin = all.offsets[first];
        for (std::size_t i = first; i <= last; ++i) offsets_.push_back(all.offsets[i] - begin);
        for (std::int64_t t = begin; t <= all.offsets[last]; ++t) indptr_.push_back(t - begin);
        structure_.emplace(*all.topology, offsets_, ChainStructure::Options{});
        const FeatureRows rows{indptr_.data(), all.words.data() + begin, nullptr, nullptr, kColumns};
        scores_.emplace(structure_->parts(), std::vector<ScoreMap::Table>{{&*all.node, rows}}, all.mask.data());
        problem_ = {.structure = &*structure_,
                    .scores = &*scores_,
                    .labels = all.labels.data() + begin,
                    .weights = all.weights.data() + first,
                    .cost = all.temperature == 0.0 ? all.cost.data() : nullptr,
                    .temperature = all.temperature};
    }
    const Problem& problem() const override { return problem_; }
    std::size_t bytes() const override { return 16 * indptr_.size(); }

  private:
    std::vector<std::int64_t> offsets_, indptr_;
    std::optional<ChainStructure> structure_;
    std::optional<ScoreMap> scores_;
    Problem problem_;
};

class Source final : public BlockSource {
  public:
    explicit Source(const Sentences& all) : all_(all) {}
    std::size_t n_blocks() const override { return kSentences / kPerBlock; }
    std::size_t size() const override { return all_.node->size() + kLabels * kLabels; }
    std::unique_ptr<LoadedBlock> load(std::size_t block) const override {
        if (n_loads++ == fails_at) throw StorageError(5, "the disk is gone");
        return std::make_unique<SomeSentences>(all_, block * kPerBlock, (block + 1) * kPerBlock);
    }
    mutable std::atomic<int> n_loads = 0;
    int fails_at = -1;

  private:
    const Sentences& all_;
};

const Callbacks kSilent{[](const Progress&) { return true; }, {}, nullptr};

LinearSolution solve(const Source& source, bool is_hinge, std::size_t bytes, std::size_t n_threads = 1) {
    StateFile store(source.n_blocks(), std::filesystem::temp_directory_path().string(), "");
    const BlockDualSettings settings{.tolerance = is_hinge ? 1e-3 : 1e-5, .n_threads = n_threads};
    const StreamSettings streaming{.bytes = bytes, .n_threads = n_threads, .n_mixed = 2};  // of ten blocks
    return is_hinge ? solve_streamed_hinge(source, store, nullptr, settings, streaming, kSilent)
                    : solve_streamed_dual(source, store, nullptr, settings, streaming, kSilent);
}

std::size_t least_bytes(const Source& source, bool is_hinge) {
    try {
        solve(source, is_hinge, 1);
    } catch (const std::invalid_argument& error) {
        return std::stoul(std::string(error.what()).substr(std::strlen("memory must be at least ")));
    }
    return 0;
}

}  // namespace

TEST(streamed_log_loss_has_the_optimum_of_memory) {
    const Sentences all(1.0);
    const SomeSentences whole(all, 0, kSentences);
    const BlockDualSettings settings{.tolerance = 1e-5};
    const LinearSolution held = solve_block_dual(whole.problem(), nullptr, settings, kSilent);
    const LinearSolution streamed = solve(Source(all), false, 1 << 20);
    CHECK(streamed.outcome == Outcome::converged);
    CHECK_NEAR(streamed.objective, held.objective, streamed.gap + held.gap);
    CHECK_NEAR(streamed_loss(Source(all), streamed.parameters.data(), 2),
               Objective(whole.problem(), 1).loss(streamed.parameters.data()), 1e-10);
}

TEST(streamed_hinge_has_the_optimum_of_memory) {
    const Sentences all(0.0);
    const SomeSentences whole(all, 0, kSentences);
    const LinearSolution held = solve_flow_swap(whole.problem(), nullptr, nullptr, {}, kSilent, nullptr);
    const LinearSolution streamed = solve(Source(all), true, 1 << 20);
    CHECK(streamed.outcome == Outcome::converged);
    CHECK_NEAR(streamed.objective, held.objective, streamed.gap + held.gap);
}

TEST(streamed_results_do_not_depend_on_memory_or_threads) {
    for (const bool is_hinge : {false, true}) {
        const Sentences all(is_hinge ? 0.0 : 1.0);
        const Source source(all);
        const std::size_t least = least_bytes(source, is_hinge);
        CHECK(least > 0);
        const LinearSolution tight = solve(source, is_hinge, least), roomy = solve(source, is_hinge, 1 << 20, 3);
        CHECK(tight.parameters == roomy.parameters);
        CHECK(tight.gap == roomy.gap);
        CHECK(source.n_loads > 100);  // with little memory blocks are read again and again
    }
}

TEST(streamed_readers_that_fail_end_the_solve) {
    const Sentences all(1.0);
    for (const int at : {3, 25, 60}) {
        Source source(all);
        const std::size_t least = least_bytes(source, false);
        source.n_loads = 0;
        source.fails_at = at;
        CHECK_THROWS(solve(source, false, least), StorageError);
    }
}

TEST(state_files_keep_what_they_are_told_to_keep) {
    const auto path = std::filesystem::temp_directory_path() / "dualfield-native-test.blocks";
    std::filesystem::remove(path);
    const std::vector<std::byte> one(5000, std::byte{1}), two(5000, std::byte{2}), large(20000, std::byte{3});
    std::vector<std::uint64_t> kept;
    {
        StateFile file(2, "", path.string());
        CHECK(!file.contains(0));
        file.write(0, one);
        file.write(1, one);
        kept = file.keep();
        file.write(0, two);
        file.write(0, two);
        file.write(1, large);
        std::vector<std::byte> found(5000);
        file.read(0, found);
        CHECK(found == two);
    }
    {
        StateFile file(2, "", path.string());
        file.restore(kept);
        std::vector<std::byte> found(5000);
        for (const std::size_t block : {0, 1}) {
            file.read(block, found);
            CHECK(found == one);
        }
        file.write(0, two);  // elsewhere: the first stays for those who begin again
        StateFile again(2, "", path.string());
        again.restore(kept);
        again.read(0, found);
        CHECK(found == one);
    }
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).put('x');
    StateFile file(2, "", path.string());
    file.restore(kept);
    std::vector<std::byte> found(5000);
    CHECK_THROWS(file.read(0, found), DamagedBlock);
    CHECK_THROWS(file.restore({1, 2, 3}), StateError);
    std::filesystem::remove(path);
    CHECK_THROWS(StateFile(2, "", "/no/such/folder/file"), StorageError);
    CHECK_THROWS(file.require(std::size_t{1} << 60), StorageError);
}
