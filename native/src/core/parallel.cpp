#include "dualfield/core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace dualfield {

namespace {

// Hands out tasks one by one, to any number of threads; the first exception ends that.
class Tasks {
  public:
    void begin(std::size_t n) {
        next_.store(0, std::memory_order_relaxed);
        n_ = n;
        failure_ = nullptr;
    }

    void take(std::size_t worker, Work work) {
        try {
            for (std::size_t task; (task = next_.fetch_add(1, std::memory_order_relaxed)) < n_;) work(worker, task);
        } catch (...) {
            next_.store(n_, std::memory_order_relaxed);
            const std::lock_guard lock(failure_guard_);
            if (!failure_) failure_ = std::current_exception();
        }
    }

    // Called when all threads are done.
    void end() const {
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    std::atomic<std::size_t> next_{0};
    std::size_t n_ = 0;
    std::exception_ptr failure_;
    std::mutex failure_guard_;
};

// Workers 1 to n_threads - 1, each calling run(worker). The system may grant fewer: those there are do the work.
template <class Run>
void start_threads(std::size_t n_threads, std::vector<std::thread>& threads, Run run) {
    threads.reserve(n_threads > 1 ? n_threads - 1 : 0);
    try {
        for (std::size_t worker = 1; worker < n_threads; ++worker) threads.emplace_back(run, worker);
    } catch (const std::system_error&) {
    }
}

}  // namespace

void parallel_for(std::size_t n_tasks, std::size_t n_threads, Work work) {
    n_threads = std::min(n_threads, n_tasks);
    if (n_threads <= 1) {
        for (std::size_t task = 0; task < n_tasks; ++task) work(0, task);
        return;
    }
    Tasks tasks;
    tasks.begin(n_tasks);
    // Made anew at each call, so that a forked process inherits none.
    std::vector<std::thread> others;
    start_threads(n_threads, others, [&](std::size_t worker) { tasks.take(worker, work); });
    tasks.take(0, work);
    for (std::thread& other : others) other.join();
    tasks.end();
}

struct ThreadTeam::Threads {
    static constexpr std::uint32_t kSpins = 4000;

    void wait_for_work(std::size_t worker) {
        for (std::uint32_t seen = 0;;) {
            for (std::uint32_t spins = 0; generation.load(std::memory_order_acquire) == seen; ++spins)
                if (spins > kSpins) generation.wait(seen, std::memory_order_acquire);
            ++seen;
            if (ending) return;
            tasks.take(worker, *work);
            if (busy.fetch_sub(1, std::memory_order_acq_rel) == 1) busy.notify_one();
        }
    }

    std::vector<std::thread> others;
    std::atomic<std::uint32_t> generation{0}, busy{0};
    std::atomic<bool> ending{false};
    const Work* work = nullptr;
    Tasks tasks;
};

ThreadTeam::ThreadTeam(std::size_t n_threads) : threads_(std::make_unique<Threads>()) {
    start_threads(n_threads, threads_->others,
                  [threads = threads_.get()](std::size_t worker) { threads->wait_for_work(worker); });
}

ThreadTeam::~ThreadTeam() {
    threads_->ending = true;
    threads_->generation.fetch_add(1, std::memory_order_release);
    threads_->generation.notify_all();
    for (std::thread& other : threads_->others) other.join();
}

std::size_t ThreadTeam::size() const {
    return threads_->others.size() + 1;
}

void ThreadTeam::run(std::size_t n_tasks, Work work) {
    Threads& team = *threads_;
    if (team.others.empty() || n_tasks <= 1) {
        for (std::size_t task = 0; task < n_tasks; ++task) work(0, task);
        return;
    }
    team.tasks.begin(n_tasks);
    team.work = &work;
    team.busy.store(static_cast<std::uint32_t>(team.others.size()), std::memory_order_relaxed);
    team.generation.fetch_add(1, std::memory_order_release);
    team.generation.notify_all();
    team.tasks.take(0, work);
    for (std::uint32_t left, spins = 0; (left = team.busy.load(std::memory_order_acquire)) != 0; ++spins)
        if (spins > Threads::kSpins) team.busy.wait(left, std::memory_order_acquire);
    team.tasks.end();
}

}  // namespace dualfield
