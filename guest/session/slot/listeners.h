// The threads of a process that sleep until their worker rings the doorbell channel (ring/layout/doorbell_channel.h). All share
// one channel: one thread listens, the rest sleep on their words. When the listener stops, for whatever reason, it
// wakes the rest, and one that goes back to sleep listens next.
//
// No wake-up is lost: the worker clears the word and then rings. A thread joins the list and looks at its word under
// the lock. If the listener took the ring before that, the word is already 0. Otherwise the listener finds the thread
// in the list, or the thread itself listens.
//
// Any thread may sleep. Trust: rings may come too often or never; each sleep has a time limit.
#pragma once

#include <cstdint>
#include <vector>

#include "guest/region/doorbell_channel.h"
#include "ring/base/mutex.h"
#include "ring/shared/shared.h"

namespace guest {

class Listeners {
 public:
  // Sleeps while the word holds `expected`, for `nanoseconds` at most, or ends early. False: the channel has ended.
  bool sleep(DoorbellChannel& doorbells, ring::Shared<std::uint32_t> word, std::uint32_t expected,
             std::uint64_t nanoseconds);

 private:
  void leave(const std::uint32_t* word, bool listened);

  ring::Mutex lock_;
  bool heard_ GUARDED_BY(lock_) = false;  // a thread listens
  std::vector<const std::uint32_t*> words_ GUARDED_BY(lock_);
};

}  // namespace guest
