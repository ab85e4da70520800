// One mutex protects the whole dependency graph. Each work item locks the mutex only twice, and a kernel takes far
// longer.
#include "host/simgpu/api/stream/schedule.h"

#include <pthread.h>
#include <signal.h>

#include <new>
#include <system_error>
#include <thread>

#include "ring/base/mutex.h"

namespace simgpu {
namespace {

// Blocks all signals while a pool thread is created, so that signals reach only the program's threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

void Schedule::run_here(const Ticket& work) {
  {
    ring::UniqueLock lock(mutex_);
    work_done_.wait(lock.native(), [&] { return work->blockers_ == 0; });
  }
  run_and_finish(work);
}

void Schedule::wait(const Ticket& work) {
  if (work == nullptr || work->done()) return;
  ring::UniqueLock lock(mutex_);
  work_done_.wait(lock.native(), [&] { return work->done(); });
}

Ticket Schedule::submit(std::function<void()> run, const std::vector<Ticket>& after, Who who) {
  auto work = std::make_shared<Work>();
  work->run_ = std::move(run);
  work->by_submitter_ = who == Who::Submitter;
  ring::UniqueLock lock(mutex_);
  for (const Ticket& other : after) {
    if (other == nullptr || other->done()) continue;
    other->followers_.push_back(work);
    ++work->blockers_;
  }
  release(work);
  return work;
}

// Removes one dependency of `work`. The lock is held on entry and on return. It is released while a thread is woken or
// started, because that thread would contend for it.
void Schedule::release(const Ticket& work) {
  if (--work->blockers_ != 0) return;
  if (work->by_submitter_) {
    work_done_.notify_all();
    return;
  }
  hand_over(work);
  const bool somebody_waits = balance_.fetch_add(1, std::memory_order_acq_rel) < 0;
  if (!somebody_waits) ++threads_;
  const ring::MutexUnlock unlocked(mutex_);
  if (somebody_waits)
    sem_post(&wakes_);
  else
    start_thread();
}

void Schedule::hand_over(const Ticket& work) {
  work->queued_ = work;
  if (!ready_.push(work.get())) more_.push_back(work.get());
}

// Takes an item from the queue. Call this function after decrementing the balance: an item is then available.
Ticket Schedule::take() {
  Work* work = nullptr;
  while (!ready_.pop(work)) {
    const ring::MutexLock lock(mutex_);
    if (more_.empty()) continue;
    work = more_.front();
    more_.pop_front();
    break;
  }
  return std::move(work->queued_);
}

bool Schedule::make_thread() {
  const SignalsBlocked blocked;
  try {
    std::thread(&Schedule::thread_main, this).detach();
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

bool Schedule::start() {
  {
    const ring::MutexLock lock(mutex_);
    ++threads_;
  }
  if (make_thread()) return true;
  const ring::MutexLock lock(mutex_);
  --threads_;
  return false;
}

void Schedule::start_thread() {
  if (make_thread()) return;
  // The system refused another thread, so existing threads will run the item. Without any thread the item could not
  // run.
  const ring::MutexLock lock(mutex_);
  if (--threads_ == 0) throw std::bad_alloc();
}

void Schedule::thread_main() {
  for (;;) {
    if (balance_.fetch_sub(1, std::memory_order_acq_rel) <= 0)
      while (sem_wait(&wakes_) != 0) {
      }
    run_and_finish(take());
  }
}

void Schedule::run_and_finish(const Ticket& work) {
  if (work->run_) work->run_();
  work->run_ = nullptr;  // frees the objects that the closure holds
  ring::UniqueLock lock(mutex_);
  work->finished_ = Work::Clock::now();
  work->done_.store(true, std::memory_order_release);
  const std::vector<Ticket> followers = std::move(work->followers_);
  work->followers_.clear();
  for (const Ticket& follower : followers) release(follower);
  work_done_.notify_all();
}

}  // namespace simgpu
