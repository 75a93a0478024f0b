// Tasks spread over threads. A task writes only what belongs to it, so that results do not depend on the number of
// threads.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace dualfield {

// Something to be called with (worker, task): a reference, good for as long as the call that it is passed to. The
// machinery of threads is compiled once behind it, not for every piece of work.
class Work {
  public:
    template <class F>
        requires(!std::is_same_v<std::remove_cvref_t<F>, Work>)
    Work(F&& work)
        : target_(const_cast<void*>(static_cast<const void*>(std::addressof(work)))),
          call_([](void* target, std::size_t worker, std::size_t task) {
              (*static_cast<std::remove_reference_t<F>*>(target))(worker, task);
          }) {}

    void operator()(std::size_t worker, std::size_t task) const { call_(target_, worker, task); }

  private:
    void* target_;
    void (*call_)(void*, std::size_t, std::size_t);
};

// Calls work(worker, task) for every task in [0, n_tasks); worker < n_threads numbers the thread, for its own
// workspace. The first exception stops the hand-out of further tasks and is thrown again here.
void parallel_for(std::size_t n_tasks, std::size_t n_threads, Work work);

// Threads that stay for the length of one solve and wait for the next piece of work: a solver gives them thousands of
// pieces, each of a few microseconds to milliseconds. They spin for a moment, then sleep.
class ThreadTeam {
  public:
    explicit ThreadTeam(std::size_t n_threads);
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;
    ~ThreadTeam();

    std::size_t size() const;

    // Calls work(worker, task) for every task, handed out one by one. An exception is thrown again here.
    void run(std::size_t n_tasks, Work work);

  private:
    struct Threads;
    std::unique_ptr<Threads> threads_;
};

}  // namespace dualfield
