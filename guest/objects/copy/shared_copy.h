// One large copy that several threads make, while nobody may touch the process's heap (guest/objects/copy/raw.h).
//
// The helping threads are there, and wait, before the copy begins; they end when the object does, since the end of a thread
// may touch the heap. The caller copies, too: without helpers it does everything.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>

namespace guest {

class SharedCopy {
 public:
  // At most this many helpers; none for what one thread copies as fast. Preconditions: signals are blocked, which the
  // helpers inherit.
  SharedCopy(void* to, const void* from, std::size_t bytes, unsigned helpers);
  // Preconditions: nobody is made to wait any more.
  ~SharedCopy();
  SharedCopy(const SharedCopy&) = delete;
  SharedCopy& operator=(const SharedCopy&) = delete;

  // Asks the kernel for the pages of `to`, in the same pieces. False: it has none left. What a kernel before 5.14 does not
  // know comes with the copy.
  bool make_pages();
  // Returns when every byte is copied.
  void run();

 private:
  static constexpr unsigned most_helpers = 16;
  enum class Step : int { Wait, MakePages, Copy, End };

  static void* help(void* self);
  void do_all(Step step);
  void do_pieces(Step step);

  std::byte* const to_;
  const std::byte* const from_;
  const std::size_t bytes_;
  // Which step is under way, and how often a step has begun: a helper does each once.
  std::atomic<Step> step_{Step::Wait};
  std::atomic<unsigned> round_{0}, ready_{0}, finished_{0};
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> no_pages_{false};
  unsigned helpers_ = 0;
  pthread_t threads_[most_helpers];
};

}  // namespace guest
