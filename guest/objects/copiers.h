// Threads that copy memory beside the caller's, for large pageable copies: one core fills or empties staging chunks at
// a third of what the GPU can take.
//
// They start at the first job that is worth it, take no signals, and wait without using the processor. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace guest {

class Copiers {
 public:
  // One copy; the caller's own, alive from start() until finish().
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

  // With this many threads of its own, none of which is started yet.
  explicit Copiers(unsigned threads) : wanted_(threads) {}
  ~Copiers();
  Copiers(const Copiers&) = delete;
  Copiers& operator=(const Copiers&) = delete;

  unsigned threads() const { return wanted_; }
  // `streamed`: this processor will not read it soon (guest/objects/streaming_copy.h).
  void start(Job& job, void* to, const void* from, std::size_t bytes, bool streamed = false);
  // Returns when the job is done, and copies meanwhile what nobody has begun. Nothing was started: returns at once.
  void finish(Job& job);

 private:
  void add_thread();
  static void* run(void* self);
  void work();
  void run_first(std::unique_lock<std::mutex>& lock);

  const unsigned wanted_;
  std::mutex mutex_;
  std::condition_variable queued_, done_;
  unsigned running_ = 0;
  bool ending_ = false;
  Job* first_ = nullptr;
  Job* last_ = nullptr;
};

// The process's: a quarter of the processors it may use, at most 3; IVGPU_COPY_THREADS says another number (0 to 16),
// IVGPU_OFF=copy_threads says none.
Copiers& copiers();

}  // namespace guest
