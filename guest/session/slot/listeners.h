// The threads of a process that sleep until the bell channel says that their worker has rung (ring/layout/bells.h). There is
// one channel for all: one of them listens, and the others sleep on their words. Whoever listens wakes the others when
// it stops, whatever the reason, and one of those that go back to sleep listens next.
//
// No wake-up is lost: the worker makes the word 0 and then rings. A thread looks at its word under the lock, after it
// is in the list. If the listener took the ring before that, the word is 0 already; else it finds the thread in the
// list, or the thread itself listens.
//
// Any thread may sleep. Trust: rings may come too often or never; each sleep has a time limit.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "guest/region/bell_channel.h"
#include "ring/shared/shared.h"

namespace guest {

class Listeners {
 public:
  // Sleeps while the word holds `expected`, for `nanoseconds` at most, or ends early. False: nobody rings any more.
  bool sleep(BellChannel& bells, ring::Shared<std::uint32_t> word, std::uint32_t expected, std::uint64_t nanoseconds);

 private:
  void leave(const std::uint32_t* word, bool listened);

  std::mutex lock_;
  bool heard_ = false;  // somebody listens
  std::vector<const std::uint32_t*> words_;
};

}  // namespace guest
