// Threads that help the caller's thread to copy memory, for large pageable copies. One core alone fills or empties
// staging chunks at a third of the GPU's speed.
//
// The threads start at the first job, take no signals, and sleep while there is no job. Any thread may call these
// functions.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>

#include "ring/base/mutex.h"

namespace guest {

class Copiers {
 public:
  // One copy. The caller owns the job and keeps it alive from start() until finish() has returned.
  class Job {
   public:
    Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

   private:
    friend class Copiers;
    enum class State : std::uint8_t { None, Queued, Running, Done };
    void* to_ = nullptr;
    const void* from_ = nullptr;
    std::size_t bytes_ = 0;
    bool streamed_ = false, awaited_ = false;
    State state_ = State::None;
    Job* next_ = nullptr;
  };

  // Uses up to this many threads. The constructor starts no thread.
  explicit Copiers(unsigned threads) : wanted_(threads) {}
  ~Copiers();
  Copiers(const Copiers&) = delete;
  Copiers& operator=(const Copiers&) = delete;

  unsigned threads() const { return wanted_; }
  // Queues a copy. `streamed`: this processor will not read the bytes soon (guest/objects/copy/streaming_copy.h).
  void start(Job& job, void* to, const void* from, std::size_t bytes, bool streamed = false);
  // Returns when the job is done. Until then the calling thread makes copies that no other thread has begun. Returns at
  // once for a job that was never started.
  void finish(Job& job);

 private:
  void add_thread() REQUIRES(mutex_);
  static void* run(void* self);
  void work();
  void run_first() REQUIRES(mutex_);

  const unsigned wanted_;
  ring::Mutex mutex_;
  std::condition_variable queued_, done_;
  unsigned running_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;
  Job* first_ GUARDED_BY(mutex_) = nullptr;
  Job* last_ GUARDED_BY(mutex_) = nullptr;
};

// Returns the process's copiers. Their number of threads is a quarter of the processors that the process may use, at
// most 3. IVGPU_COPY_THREADS sets another number (0 to 16), IVGPU_OFF=copy_threads sets 0.
Copiers& copiers();

}  // namespace guest
