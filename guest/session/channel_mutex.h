// The lock of a channel. While one thread alone uses the channel, its owner locks and unlocks without a locked
// instruction. The first other thread makes the lock an ordinary mutex for good.
//
//   owner, in lock()                       another thread, in share()
//   busy = true                            reserved = false
//   compiler fence             B           process fence (guest/base/process_fence.h)
//   look at `reserved` once more           then, in lock(): lock the mutex, wait while `busy`
//   still set? the owner holds the lock
//   else busy = false, lock the mutex
//
// Edges:
//   B  the process fence makes each thread of the process pass a full fence, so either the owner sees that the lock is
//      shared, or the other thread sees that the owner is busy
//   U  unlock -> lock   everything that the owner did is done before `busy` is false
//
// Covered by: the explorer's scenario channel_mutex (docs/models.md), and tests/unit/guest/channel_mutex_test.cc.
// ThreadSanitizer does not know the process fence, so its builds always use the mutex.
//
// Trust: threads of one process. No member lies in memory that another process writes.
//
// ```cpp
// void post_one(guest::Channel& channel) {
//   const guest::ChannelLock lock(channel.mutex());
// }
// ```
#pragma once

#include <atomic>

#include "guest/base/process_fence.h"
#include "ring/base/mutex.h"
#include "ring/verify/mutants.h"

#if defined(__SANITIZE_THREAD__)
#define IVGPU_SYNCHRONISES_VISIBLY 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IVGPU_SYNCHRONISES_VISIBLY 1
#endif
#endif

namespace guest {

class CAPABILITY("mutex") ChannelMutex {
 public:
  // From now on only one thread, the owner, calls lock() and unlock(). Has no effect on a shared lock. Preconditions:
  // can_fence_process(); no thread holds the lock; the owner learns of this call through another lock.
  void reserve() {
#ifndef IVGPU_SYNCHRONISES_VISIBLY
    if (!shared_.load(std::memory_order_relaxed)) reserved_.store(true, std::memory_order_relaxed);
#endif
  }
  // From now on any thread may lock, once this function has returned. Any thread may call this function at any time.
  void share() {
    shared_.store(true, std::memory_order_relaxed);
    reserved_.store(false, std::memory_order_relaxed);
    if (!ring::wrong(ring::Mutant::owner_unfenced)) process_fence();  // B
  }
  bool is_reserved() const { return reserved_.load(std::memory_order_relaxed); }

  void lock() ACQUIRE() NO_THREAD_SAFETY_ANALYSIS {
    if (is_reserved() && lock_as_owner()) return;
    mutex_.lock();
    while (is_busy()) await_owner();
  }
  void unlock() RELEASE() NO_THREAD_SAFETY_ANALYSIS {
    if (!held_by_owner_) return mutex_.unlock();
    held_by_owner_ = false;
    busy_.store(false, std::memory_order_release);  // U
  }
  // Preconditions: share() has returned.
  bool try_lock() TRY_ACQUIRE(true) NO_THREAD_SAFETY_ANALYSIS {
    if (!mutex_.try_lock()) return false;
    if (!is_busy()) return true;
    mutex_.unlock();
    return false;
  }
  // As of a ring::Mutex.
  void assume_held() const ASSERT_CAPABILITY(this) {}

 private:
  bool lock_as_owner() {
    busy_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // B
    if (is_reserved() || ring::wrong(ring::Mutant::owner_look)) return held_by_owner_ = true;
    busy_.store(false, std::memory_order_release);  // U, for the owner's earlier uses of the lock
    return false;
  }
  bool is_busy() const {
    return !ring::wrong(ring::Mutant::owner_unawaited) && busy_.load(std::memory_order_acquire);  // U
  }
  // Sleeps for a moment. The owner does not know that another thread waits, and may itself wait for a reply.
  static void await_owner();

  ring::Mutex mutex_;
  std::atomic<bool> reserved_{false}, shared_{false};
  std::atomic<bool> busy_{false};  // the owner holds the lock, or is about to look at reserved_
  bool held_by_owner_ = false;     // only the thread that holds the lock uses this member
};

// Locks a channel for its scope.
class SCOPED_CAPABILITY ChannelLock {
 public:
  explicit ChannelLock(ChannelMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~ChannelLock() RELEASE() { mutex_.unlock(); }
  ChannelLock(const ChannelLock&) = delete;
  ChannelLock& operator=(const ChannelLock&) = delete;

 private:
  ChannelMutex& mutex_;
};

}  // namespace guest
