#include "guest/session/slot/listeners.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "guest/base/timespec.h"
#include "ring/base/mutex.h"

namespace guest {

bool Listeners::sleep(DoorbellChannel& doorbells, ring::Shared<std::uint32_t> word, std::uint32_t expected,
                      std::uint64_t nanoseconds) {
  const std::uint32_t* at = word.futex_word();
  bool listens = false;
  {
    const ring::MutexLock lock(lock_);
    if (word.load(std::memory_order_relaxed) != expected) return true;
    words_.push_back(at);
    listens = !std::exchange(heard_, true);
  }
  bool there = true;
  if (listens) {
    there = doorbells.listen(nanoseconds) != DoorbellChannel::Heard::Ended;
  } else {
    // A private futex suffices, because only this process maps the slot, and the worker runs on another kernel.
    const timespec limit = timespec_of(nanoseconds);
    syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, expected, &limit, nullptr, 0);
  }
  leave(at, listens);
  return there;
}

// Wakes the sleepers even if their words are unchanged: either a word has changed, or one of the sleepers must listen
// next.
void Listeners::leave(const std::uint32_t* word, bool listened) {
  const ring::MutexLock lock(lock_);
  words_.erase(std::find(words_.begin(), words_.end(), word));
  if (!listened) return;
  heard_ = false;
  for (const std::uint32_t* other : words_) syscall(SYS_futex, other, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace guest
