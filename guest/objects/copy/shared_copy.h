// One large copy by several threads, while no thread may touch the process's heap (guest/objects/copy/raw.h).
//
// The helper threads exist and wait before the copy begins. The helpers end with the object, since a thread's end may
// touch the heap. The calling thread copies, too; without helpers it copies everything.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>

namespace guest {

class SharedCopy {
 public:
  // Makes at most `helpers` threads, and none if one thread copies as fast. Preconditions: signals are blocked, and the
  // helpers inherit the signal mask.
  SharedCopy(void* to, const void* from, std::size_t bytes, unsigned helpers);
  // Preconditions: no thread is stopped any more.
  ~SharedCopy();
  SharedCopy(const SharedCopy&) = delete;
  SharedCopy& operator=(const SharedCopy&) = delete;

  // Makes the kernel allocate the pages of `to`; the work is shared with the helpers. Returns false if the kernel has
  // no memory left. A kernel before 5.14 cannot do this; the copy then allocates the pages.
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
  // The current step, and the number of steps so far, so that a helper does each step once.
  std::atomic<Step> step_{Step::Wait};
  std::atomic<unsigned> round_{0}, ready_{0}, finished_{0};
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> no_pages_{false};
  unsigned helpers_ = 0;
  pthread_t threads_[most_helpers];
};

}  // namespace guest
