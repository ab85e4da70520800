// The threads of a process that sleep until their worker rings the doorbell channel (ring/layout/doorbell_channel.h).
// All threads share one channel: one thread listens, and the other threads sleep on their words. When the listener
// stops, for whatever reason, it wakes the other threads, and a thread that goes back to sleep listens next.
//
// No wake-up is lost: the worker clears the word and then rings. A thread joins the list and looks at its word under
// the lock. If the listener received the ring before that, the word is already 0. Otherwise the listener finds the
// thread in the list, or the thread itself listens.
//
// Any thread may sleep. Trust: rings may arrive too often or never, so each sleep has a time limit.
#pragma once

#include <cstdint>
#include <vector>

#include "guest/region/doorbell_channel.h"
#include "ring/base/mutex.h"
#include "ring/shared/shared.h"

namespace guest {

class Listeners {
 public:
  // Sleeps while the word equals `expected`, for at most `nanoseconds`; may end early. Returns false if the channel has
  // ended.
  bool sleep(DoorbellChannel& doorbells, ring::Shared<std::uint32_t> word, std::uint32_t expected,
             std::uint64_t nanoseconds);

 private:
  void leave(const std::uint32_t* word, bool listened);

  ring::Mutex lock_;
  bool heard_ GUARDED_BY(lock_) = false;  // whether a thread listens
  std::vector<const std::uint32_t*> words_ GUARDED_BY(lock_);
};

}  // namespace guest
