// Tasks spread over threads. A task writes only what belongs to it, so that results do not depend on the number of
// threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace dualfield {

// Calls work(worker, task) for every task in [0, n_tasks); worker < n_threads numbers the thread, for its own
// workspace. The first exception stops the hand-out of further tasks and is thrown again here.
template <class Work>
void parallel_for(std::size_t n_tasks, std::size_t n_threads, Work&& work) {
    n_threads = std::min(n_threads, n_tasks);
    if (n_threads <= 1) {
        for (std::size_t task = 0; task < n_tasks; ++task) work(std::size_t{0}, task);
        return;
    }
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_guard;
    const auto run = [&](std::size_t worker) {
        try {
            for (std::size_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < n_tasks;) work(worker, task);
        } catch (...) {
            next.store(n_tasks, std::memory_order_relaxed);
            const std::lock_guard lock(failure_guard);
            if (!failure) failure = std::current_exception();
        }
    };
    // Made anew at each call, so that a forked process inherits none.
    std::vector<std::thread> others;
    others.reserve(n_threads - 1);
    try {
        for (std::size_t worker = 1; worker < n_threads; ++worker) others.emplace_back(run, worker);
    } catch (const std::system_error&) {
        // The system grants no more threads: those there are do the work.
    }
    run(0);
    for (std::thread& other : others) other.join();
    if (failure) std::rethrow_exception(failure);
}

// Threads that stay for the length of one solve and wait for the next piece of work: a solver gives them thousands of
// pieces, each of a few microseconds to milliseconds. They spin for a moment, then sleep.
class ThreadTeam {
  public:
    explicit ThreadTeam(std::size_t n_threads) {
        try {
            for (std::size_t worker = 1; worker < n_threads; ++worker)
                others_.emplace_back([this, worker] { wait_for_work(worker); });
        } catch (const std::system_error&) {
            // The system grants no more threads: those there are do the work.
        }
    }
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;
    ~ThreadTeam() {
        ending_ = true;
        generation_.fetch_add(1, std::memory_order_release);
        generation_.notify_all();
        for (std::thread& other : others_) other.join();
    }

    std::size_t size() const { return others_.size() + 1; }

    // Calls work(worker, task) for every task, handed out one by one. An exception is thrown again here.
    template <class Work>
    void run(std::size_t n_tasks, Work&& work) {
        if (others_.empty() || n_tasks <= 1) {
            for (std::size_t task = 0; task < n_tasks; ++task) work(std::size_t{0}, task);
            return;
        }
        next_.store(0, std::memory_order_relaxed);
        n_tasks_ = n_tasks;
        failure_ = nullptr;
        work_ = [&work](std::size_t worker, std::size_t task) { work(worker, task); };
        busy_.store(static_cast<std::uint32_t>(others_.size()), std::memory_order_relaxed);
        generation_.fetch_add(1, std::memory_order_release);
        generation_.notify_all();
        take_tasks(0);
        for (std::uint32_t left, spins = 0; (left = busy_.load(std::memory_order_acquire)) != 0; ++spins)
            if (spins > kSpins) busy_.wait(left, std::memory_order_acquire);
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    static constexpr std::uint32_t kSpins = 4000;

    void take_tasks(std::size_t worker) {
        try {
            for (std::size_t task; (task = next_.fetch_add(1, std::memory_order_relaxed)) < n_tasks_;)
                work_(worker, task);
        } catch (...) {
            next_.store(n_tasks_, std::memory_order_relaxed);
            const std::lock_guard lock(failure_guard_);
            if (!failure_) failure_ = std::current_exception();
        }
    }
    void wait_for_work(std::size_t worker) {
        for (std::uint32_t seen = 0;;) {
            for (std::uint32_t spins = 0; generation_.load(std::memory_order_acquire) == seen; ++spins)
                if (spins > kSpins) generation_.wait(seen, std::memory_order_acquire);
            ++seen;
            if (ending_) return;
            take_tasks(worker);
            if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
        }
    }

    std::vector<std::thread> others_;
    std::atomic<std::uint32_t> generation_{0}, busy_{0};
    std::atomic<bool> ending_{false};
    std::atomic<std::size_t> next_{0};
    std::size_t n_tasks_ = 0;
    std::function<void(std::size_t, std::size_t)> work_;
    std::exception_ptr failure_;
    std::mutex failure_guard_;
};

}  // namespace dualfield
