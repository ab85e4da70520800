// The order of work: a graph of pieces of work, each after those it depends on. Streams are chains in it.
//
// Work without unfinished dependencies is run by a pool of threads that grows while every thread is busy (work may
// block: a stream that waits for a word in memory, a callback). A piece that its submitter waits for anyway runs on the
// submitter's own thread.
//
// Ready work is handed to the pool by a queue without locks (docs/design/017-lockfree-between-threads.md). `balance_`
// is the number of pieces there less the number of threads that want one. Adding a piece to a negative balance wakes
// one sleeping thread, adding one to any other balance starts a thread, and a thread that takes from a positive balance
// finds a piece there. So each piece has its one thread, and no wake-up is lost: the semaphore keeps one that comes
// before the sleep. The balance's acquire and release order nothing but that; the queue orders what is in a piece.
// Covered by tests/unit/simgpu/schedule_test.cc, also with ThreadSanitizer.
//
// Invariant: a piece depends only on pieces submitted before it, so the graph has no circle. Threads: any. No function
// given to the schedule is called with its lock held.
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

namespace simgpu {

class Schedule;

class Work {
 public:
  using Clock = std::chrono::steady_clock;
  bool done() const { return done_.load(std::memory_order_acquire); }
  Clock::time_point finished() const { return finished_; }  // when done()

 private:
  friend class Schedule;
  std::function<void()> run_;
  std::vector<std::shared_ptr<Work>> followers_;
  std::size_t blockers_ = 1;  // unfinished dependencies; one more until it is submitted
  bool by_submitter_ = false;
  std::atomic<bool> done_{false};
  std::shared_ptr<Work> queued_;  // itself, while it is in the queue
  Clock::time_point finished_;
};

using Ticket = std::shared_ptr<Work>;

class Schedule {
 public:
  // With room for this many pieces whose thread is still to come; more go into a list.
  explicit Schedule(std::size_t room = 1024) : ready_(room) { sem_init(&wakes_, 0, 0); }
  ~Schedule() { sem_destroy(&wakes_); }
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // Makes the first thread of the pool. False if the system gives none.
  bool start();

  enum class Who { Pool, Submitter };
  // `after` may hold nulls and finished work. Other work may depend on the returned ticket. Submitter: the caller must
  // call run_here next.
  Ticket submit(std::function<void()> run, const std::vector<Ticket>& after, Who who);
  // Runs work of one's own as soon as it may be run, and returns when it is done.
  void run_here(const Ticket& work);
  void wait(const Ticket& work);

  // Held while a caller collects dependencies and submits, so that no other submission comes between: the order of
  // submissions is the order of the host's calls. Never held while waiting.
  std::mutex& order() { return order_; }

 private:
  void run_and_finish(const Ticket& work);
  void release(std::unique_lock<std::mutex>& lock, const Ticket& work);
  void hand_over(const Ticket& work);
  Ticket take();
  bool make_thread();
  void start_thread();
  void thread_main();

  std::mutex order_;
  std::mutex mutex_;  // taken after order_
  std::condition_variable work_done_;
  std::size_t threads_ = 0;

  boost::lockfree::queue<Work*, boost::lockfree::fixed_sized<true>> ready_;
  std::deque<Work*> more_;  // under mutex_: work that found no room there
  std::atomic<std::ptrdiff_t> balance_{0};
  sem_t wakes_;
};

}  // namespace simgpu
