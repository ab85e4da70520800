// Mutexes and locks that clang checks, for every thread of the product. The mutexes of the standard library have no
// annotations.
//
// A member names the mutex that guards it, and a function names the mutexes that its caller must hold or must not hold.
// clang's -Wthread-safety then refuses an access without the lock; other compilers see no annotation. A class of this
// file costs as much as the class of the standard library that it contains. A condition variable waits with
// UniqueLock::native(); its predicate is a function of its own for clang, and repeats REQUIRES.
//
// Trust: threads of one process. No mutex lies in memory that another process writes.
//
// ```cpp
// class Counter {
//  public:
//   void add(int amount) EXCLUDES(mutex_) {
//     const ring::MutexLock lock(mutex_);
//     total_ += amount;
//   }
//
//  private:
//   ring::Mutex mutex_;
//   int total_ GUARDED_BY(mutex_) = 0;
// };
// ```
#pragma once

#include <mutex>
#include <shared_mutex>

#ifdef __clang__
#define IVGPU_THREAD_ANNOTATION(...) __attribute__((__VA_ARGS__))
#else
#define IVGPU_THREAD_ANNOTATION(...)
#endif

// Of classes: a mutex, and a lock that holds a mutex for its scope.
#define CAPABILITY(kind) IVGPU_THREAD_ANNOTATION(capability(kind))
#define SCOPED_CAPABILITY IVGPU_THREAD_ANNOTATION(scoped_lockable)
// Of members: the mutex that guards the member, or that guards what the member points to.
#define GUARDED_BY(mutex) IVGPU_THREAD_ANNOTATION(guarded_by(mutex))
#define PT_GUARDED_BY(mutex) IVGPU_THREAD_ANNOTATION(pt_guarded_by(mutex))
// Of mutexes: the lock order. clang checks it with -Wthread-safety-beta.
#define ACQUIRED_BEFORE(...) IVGPU_THREAD_ANNOTATION(acquired_before(__VA_ARGS__))
#define ACQUIRED_AFTER(...) IVGPU_THREAD_ANNOTATION(acquired_after(__VA_ARGS__))
// Of functions: mutexes that the caller holds, and mutexes that the caller must not hold.
#define REQUIRES(...) IVGPU_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) IVGPU_THREAD_ANNOTATION(requires_shared_capability(__VA_ARGS__))
#define EXCLUDES(...) IVGPU_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
// Of functions: mutexes that the function locks or unlocks.
#define ACQUIRE(...) IVGPU_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) IVGPU_THREAD_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) IVGPU_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) IVGPU_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) IVGPU_THREAD_ANNOTATION(release_shared_capability(__VA_ARGS__))
#define RELEASE_GENERIC(...) IVGPU_THREAD_ANNOTATION(release_generic_capability(__VA_ARGS__))
// Of functions: the mutex is held after a call; the function returns this mutex; the function is not checked.
#define ASSERT_CAPABILITY(mutex) IVGPU_THREAD_ANNOTATION(assert_capability(mutex))
#define RETURN_CAPABILITY(mutex) IVGPU_THREAD_ANNOTATION(lock_returned(mutex))
#define NO_THREAD_SAFETY_ANALYSIS IVGPU_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace ring {

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  // Asserts to clang that the mutex is held, in a lambda or a template that only holders of the mutex call. Costs and
  // checks nothing. REQUIRES is impossible for a lambda: the lambda's `this` is not the function's `this`, and clang 14
  // takes a wrong argument.
  void assume_held() const ASSERT_CAPABILITY(this) {}

 private:
  friend class UniqueLock;
  std::mutex mutex_;
};

class CAPABILITY("mutex") RecursiveMutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  void assume_held() const ASSERT_CAPABILITY(this) {}

 private:
  std::recursive_mutex mutex_;
};

class CAPABILITY("mutex") SharedMutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  void lock_shared() ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() RELEASE_SHARED() { mutex_.unlock_shared(); }
  void assume_held() const ASSERT_CAPABILITY(this) {}

 private:
  std::shared_mutex mutex_;
};

// Locks a mutex for its scope.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Locks a mutex, may unlock it and lock it again within the scope, and lets a condition variable do so.
class SCOPED_CAPABILITY UniqueLock {
 public:
  explicit UniqueLock(Mutex& mutex) ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~UniqueLock() RELEASE() {}
  UniqueLock(const UniqueLock&) = delete;
  UniqueLock& operator=(const UniqueLock&) = delete;

  void lock() ACQUIRE() { lock_.lock(); }
  void unlock() RELEASE() { lock_.unlock(); }
  std::unique_lock<std::mutex>& native() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

// Unlocks a mutex for its scope. Its thread holds the mutex before and after.
class SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~MutexUnlock() RELEASE() { mutex_.lock(); }
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

// Locks a mutex that the calling thread may already hold.
class SCOPED_CAPABILITY RecursiveLock {
 public:
  explicit RecursiveLock(RecursiveMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~RecursiveLock() RELEASE() { mutex_.unlock(); }
  RecursiveLock(const RecursiveLock&) = delete;
  RecursiveLock& operator=(const RecursiveLock&) = delete;

 private:
  RecursiveMutex& mutex_;
};

// WriterLock excludes all other threads from the data that a shared mutex guards; ReaderLock excludes only writers.
class SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~WriterLock() RELEASE() { mutex_.unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};
class SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex) : mutex_(mutex) { mutex_.lock_shared(); }
  ~ReaderLock() RELEASE_GENERIC() { mutex_.unlock_shared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace ring
