// Orders work as a graph in which each work item follows its dependencies. A stream is a chain of work items.
//
// A pool of threads runs items without unfinished dependencies. Items may block, in a stream's wait for a memory value
// or in a callback, so the pool grows while all its threads are busy. If the submitter waits for its item anyway, the
// submitter's thread runs the item.
//
// A lock-free queue passes ready items to the pool (docs/design/017-lockfree-between-threads.md). `balance_` is the
// number of queued items minus the number of threads that want an item. Adding an item to a negative balance wakes a
// sleeping thread; otherwise it starts a thread. A thread that decrements a positive balance finds an item. Therefore
// each item gets exactly one thread. The semaphore keeps a wake-up that precedes the sleep. The acquire and release
// operations on the balance order only the balance; the queue orders the contents of items.
// tests/unit/simgpu/schedule_test.cc tests the algorithm, also under ThreadSanitizer.
//
// Invariant: an item depends only on items submitted earlier, so the graph has no cycle. Thread-safe. The schedule
// never calls a function while it holds its lock.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <boost/lockfree/queue.hpp>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "ring/base/mutex.h"

namespace simgpu {

class Schedule;

class Work {
 public:
  using Clock = std::chrono::steady_clock;
  bool done() const { return done_.load(std::memory_order_acquire); }
  Clock::time_point finished() const { return finished_; }  // valid once done() is true

 private:
  friend class Schedule;
  std::function<void()> run_;
  std::vector<std::shared_ptr<Work>> followers_;
  std::size_t blockers_ = 1;  // number of unfinished dependencies, plus one until submission
  bool by_submitter_ = false;
  std::atomic<bool> done_{false};
  std::shared_ptr<Work> queued_;  // owns this item while it is queued
  Clock::time_point finished_;
};

using Ticket = std::shared_ptr<Work>;

class Schedule {
 public:
  // `room` is the capacity of the queue in items; a list holds further items.
  explicit Schedule(std::size_t room = 1024) : ready_(room) { sem_init(&wakes_, 0, 0); }
  ~Schedule() { sem_destroy(&wakes_); }
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // Starts the pool's first thread. Returns false if the system refuses to create a thread.
  bool start();

  enum class Who { Pool, Submitter };
  // Submits work that follows `after`, which may contain null and finished items. Other work may depend on the returned
  // ticket. With Who::Submitter, the caller must call run_here() next.
  Ticket submit(std::function<void()> run, const std::vector<Ticket>& after, Who who);
  // Waits for the dependencies of the caller's own work, runs the work and returns.
  void run_here(const Ticket& work);
  void wait(const Ticket& work);

  // A caller holds this mutex while it collects dependencies and submits, so that submissions follow the order of the
  // host's calls. No thread holds the mutex while it waits.
  ring::Mutex& order() RETURN_CAPABILITY(order_) { return order_; }

 private:
  void run_and_finish(const Ticket& work);
  void release(const Ticket& work) REQUIRES(mutex_);
  void hand_over(const Ticket& work) REQUIRES(mutex_);
  Ticket take();
  bool make_thread();
  void start_thread();
  void thread_main();

  ring::Mutex order_ ACQUIRED_BEFORE(mutex_);
  ring::Mutex mutex_;
  std::condition_variable work_done_;
  std::size_t threads_ GUARDED_BY(mutex_) = 0;

  boost::lockfree::queue<Work*, boost::lockfree::fixed_sized<true>> ready_;
  std::deque<Work*> more_ GUARDED_BY(mutex_);  // items that did not fit into the queue
  std::atomic<std::ptrdiff_t> balance_{0};
  sem_t wakes_;
};

}  // namespace simgpu
