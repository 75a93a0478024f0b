#include "block_stream.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>

#include "dualfield/core/parallel.hpp"

namespace dualfield {
namespace {

constexpr std::size_t kMostDepth = 3;  // groups on their way: one is read, one visited, one written
// What allocators add, and the workspaces of a visit.
constexpr double kSlack = 1.08;

}  // namespace

std::size_t VisitedBlock::bytes() const {
    const Problem& now = problem();
    const FeaturePlan* plan = now.scores->plan();
    // Parts of the true labellings, starts of examples and chunks.
    const std::size_t truth = 8 * now.n_nodes() + 48 * now.n_examples();
    return loaded_->bytes() + (plan ? plan->bytes() : 0) + truth;
}

BlockStream::BlockStream(const BlockSource& source, StateStore& store, const StreamSettings& settings)
    : source_(source),
      store_(store),
      settings_(settings),
      sizes_(source.n_blocks()),
      planned_(source.n_blocks(), 0),
      held_(source.n_blocks()),
      stays_(source.n_blocks(), 0) {
    survey();
}

BlockStream::~BlockStream() = default;

void BlockStream::survey() {
    struct Found {
        std::size_t n_examples = 0;
        DataSums sums;
    };
    std::vector<Found> found(n_blocks());
    parallel_for(n_blocks(), settings_.n_threads, [&](std::size_t, std::size_t b) {
        const std::unique_ptr<VisitedBlock> block = open(b);
        const Problem& problem = block->problem();
        const PartLayout& parts = problem.structure->parts();
        const std::size_t n = problem.n_examples();
        sizes_[b] = {block->bytes(), n, problem.n_nodes(), parts.own_begin(n), checked_product(n, parts.n_shared)};
        found[b].sums = {n, 0.0, problem.scores->square()};
        for (std::size_t i = 0; i < n; ++i) {
            found[b].n_examples += problem.length(i) > 0;
            found[b].sums.weights += problem.weights[i];
        }
    });
    for (const Found& one : found) {
        n_examples_ += one.n_examples;
        sums_.n_examples += one.sums.n_examples;
        sums_.weights += one.sums.weights;
        sums_.square += one.sums.square;
    }
}

void BlockStream::plan(const StateBytes& state_bytes) {
    std::size_t largest = 0, all = 0, all_states = 0;
    for (std::size_t b = 0; b < n_blocks(); ++b) {
        const std::size_t state = state_bytes(sizes_[b]);
        planned_[b] = static_cast<std::size_t>(kSlack * static_cast<double>(sizes_[b].bytes + state));
        largest = std::max(largest, planned_[b]);
        all += planned_[b];
        all_states += state;
    }
    const std::size_t group = settings_.n_mixed * largest;
    least_bytes_ = std::min(2 * group, all);
    if (settings_.bytes < settings_.fixed + least_bytes_)
        throw std::invalid_argument("memory must be at least " + std::to_string(settings_.fixed + least_bytes_) +
                                    " bytes: " + std::to_string(settings_.fixed) +
                                    " for weights and tables of features, " + std::to_string(least_bytes_) +
                                    " for the blocks that are read and visited. Got " +
                                    std::to_string(settings_.bytes) + " instead.");
    std::size_t free = settings_.bytes - settings_.fixed, on_disk = settings_.is_kept_twice ? 2 * all_states : 0;
    n_lookers_ = settings_.n_threads;
    transient_ = 0;
    if (all > free) {
        depth_ = std::clamp(free / std::max<std::size_t>(group, 1), std::size_t{2}, kMostDepth);
        n_lookers_ = std::clamp(free / std::max<std::size_t>(largest, 1), std::size_t{1}, settings_.n_threads);
        transient_ = std::min(free, std::max(depth_ * group, n_lookers_ * largest));
        free -= transient_;
    }
    n_held_ = 0;
    for (std::size_t b = 0; b < n_blocks(); ++b) {
        stays_[b] = planned_[b] <= free;
        if (stays_[b]) {
            free -= planned_[b];
            ++n_held_;
        } else {
            if (held_[b]) write(*held_[b]);
            held_[b].reset();
            if (!settings_.is_kept_twice) on_disk += state_bytes(sizes_[b]);
        }
    }
    store_.require(on_disk);
}

std::unique_ptr<VisitedBlock> BlockStream::open(std::size_t block) const {
    try {
        return std::make_unique<VisitedBlock>(block, source_.load(block));
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument("In block " + std::to_string(block) + " of the corpus: " + error.what());
    }
}

std::unique_ptr<VisitedBlock> BlockStream::load(std::size_t block, bool with_state) const {
    auto loaded = open(block);
    if (with_state && store_.contains(block)) {
        loaded->state.resize(store_.bytes(block));
        store_.read(block, loaded->state);
    }
    return loaded;
}

void BlockStream::write(VisitedBlock& block) {
    if (!block.is_changed) return;
    store_.write(block.number, block.state);
    block.is_changed = false;
}

// Groups of blocks in order, with a thread that reads ahead and one that writes back.
class BlockStream::Pipeline {
  public:
    Pipeline(BlockStream& stream, std::span<const std::size_t> order)
        : stream_(stream), order_(order), reader_([this] { guarded([this] { read(); }); }) {
        try {
            writer_ = std::thread([this] { guarded([this] { write(); }); });
        } catch (...) {
            end();
            throw;
        }
    }
    ~Pipeline() { end(); }

    using Group = std::vector<std::unique_ptr<VisitedBlock>>;

    // The next group; empty at the end.
    Group next() {
        std::unique_lock lock(guard_);
        changed_.wait(lock, [&] { return failure_ || !ready_.empty() || all_read_; });
        if (failure_) std::rethrow_exception(failure_);
        if (ready_.empty()) return {};
        Group group = std::move(ready_.front());
        ready_.pop_front();
        return group;
    }
    void give_back(Group group) {
        const std::lock_guard lock(guard_);
        done_.push_back(std::move(group));
        changed_.notify_all();
    }
    // Waits until all that was given back is written.
    void finish() {
        {
            std::unique_lock lock(guard_);
            changed_.wait(lock, [&] { return failure_ || (done_.empty() && !is_writing_); });
            if (failure_) std::rethrow_exception(failure_);
        }
        end();
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    template <class Body>
    void guarded(const Body& body) {
        try {
            body();
        } catch (...) {
            const std::lock_guard lock(guard_);
            if (!failure_) failure_ = std::current_exception();
            changed_.notify_all();
        }
    }

    void read() {
        for (std::size_t at = 0; at < order_.size(); at += stream_.settings_.n_mixed) {
            {
                std::unique_lock lock(guard_);
                changed_.wait(lock, [&] { return is_over_ || n_under_way_ < stream_.depth_; });
                if (is_over_) return;
                ++n_under_way_;
            }
            Group group;
            for (std::size_t k = at; k < std::min(at + stream_.settings_.n_mixed, order_.size()); ++k) {
                auto& held = stream_.held_[order_[k]];
                group.push_back(held ? std::move(held) : stream_.load(order_[k], true));
            }
            const std::lock_guard lock(guard_);
            ready_.push_back(std::move(group));
            changed_.notify_all();
        }
        const std::lock_guard lock(guard_);
        all_read_ = true;
        changed_.notify_all();
    }

    void write() {
        for (;;) {
            Group group;
            {
                std::unique_lock lock(guard_);
                changed_.wait(lock, [&] { return is_over_ || !done_.empty(); });
                if (done_.empty()) return;
                group = std::move(done_.front());
                done_.pop_front();
                is_writing_ = true;
            }
            for (auto& block : group) {
                const std::size_t number = block->number;
                if (stream_.stays_[number])
                    stream_.held_[number] = std::move(block);
                else
                    stream_.write(*block);
            }
            group.clear();
            const std::lock_guard lock(guard_);
            is_writing_ = false;
            --n_under_way_;
            changed_.notify_all();
        }
    }

    // Groups that were read and not visited go back to where they were.
    void end() {
        {
            const std::lock_guard lock(guard_);
            is_over_ = true;
            changed_.notify_all();
        }
        if (reader_.joinable()) reader_.join();
        if (writer_.joinable()) writer_.join();
        for (Group& group : ready_)
            for (auto& block : group)
                if (stream_.stays_[block->number]) stream_.held_[block->number] = std::move(block);
        ready_.clear();
    }

    BlockStream& stream_;
    std::span<const std::size_t> order_;
    std::mutex guard_;
    std::condition_variable changed_;
    std::deque<Group> ready_, done_;
    std::size_t n_under_way_ = 0;
    bool is_over_ = false, all_read_ = false, is_writing_ = false;
    std::exception_ptr failure_;
    std::thread reader_, writer_;
};

std::vector<std::size_t> BlockStream::every_block() const {
    std::vector<std::size_t> blocks(n_blocks());
    std::iota(blocks.begin(), blocks.end(), std::size_t{0});
    return blocks;
}

void BlockStream::visit(std::span<const std::size_t> order, const std::function<bool(Blocks)>& visit) {
    Pipeline pipeline(*this, order);
    std::vector<VisitedBlock*> group;
    for (bool goes_on = true; goes_on;) {
        auto blocks = pipeline.next();
        if (blocks.empty()) break;
        group.clear();
        for (const auto& block : blocks) group.push_back(block.get());
        goes_on = visit(group);
        pipeline.give_back(std::move(blocks));
    }
    pipeline.finish();
    release_beyond_memory();
}

// States that grow may take more than was planned for.
void BlockStream::release_beyond_memory() {
    const auto bytes_of = [](const VisitedBlock& block) { return block.bytes() + block.state.capacity(); };
    std::size_t bytes = settings_.fixed + transient_;
    for (const auto& block : held_)
        if (block) bytes += bytes_of(*block);
    for (std::size_t b = held_.size(); b-- > 0 && bytes > settings_.bytes;) {
        if (!held_[b]) continue;
        bytes -= bytes_of(*held_[b]);
        write(*held_[b]);
        held_[b].reset();
        stays_[b] = 0;
        --n_held_;
    }
}

void BlockStream::look(const std::function<void(VisitedBlock&)>& look) {
    parallel_for(n_blocks(), n_lookers_, [&](std::size_t, std::size_t b) {
        if (held_[b]) return look(*held_[b]);
        look(*load(b, false));
    });
}

std::vector<std::uint64_t> BlockStream::keep() {
    for (const auto& block : held_)
        if (block) write(*block);
    return store_.keep();
}

void BlockStream::restore(const std::vector<std::uint64_t>& kept) {
    store_.restore(kept);
    for (auto& block : held_) block.reset();
}

}  // namespace dualfield
