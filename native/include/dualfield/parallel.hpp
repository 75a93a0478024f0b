// Tasks spread over threads. A task writes only what belongs to it, so that results do not depend on the number of
// threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
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

}  // namespace dualfield
