// How threads of this process sleep until their worker wakes them. If worker and process run on one kernel, threads
// sleep on a futex. Otherwise they sleep in the guest's kernel module until the slot's interrupt, or at a doorbell
// channel. If none of these exists, threads use timed sleeps and look again. IVGPU_OFF=wakes makes threads use timed
// sleeps everywhere.
//
// Any thread may call this class once the slot is mapped. Sleeping orders no memory, since ring/queue/parking.h does so
// and a sleeper looks again anyway. Trust: the worker may wake too often or never, so each sleep has a time limit.
#pragma once

#include <cstdint>

#include "guest/region/module.h"
#include "guest/region/region.h"
#include "guest/session/slot/listeners.h"
#include "ring/layout/layout.h"
#include "ring/shared/shared.h"

namespace guest {

class Sleeper {
 public:
  explicit Sleeper(Region& region) : region_(region) {}

  // Called when the slot is mapped at `base`, and before any thread sleeps.
  void begin(const CheckedRegion& checked, std::uint32_t slot, const std::byte* base);

  // Returns how the worker must wake a thread that announces its sleep. No: only timed sleeps are possible.
  ring::Asleep how() const { return how_; }

  // Sleeps on a word of the slot while the word equals how(), for at most `nanoseconds`. Returns false if the process
  // has lost the slot and must touch nothing of the slot. Preconditions: how() is not No, and the caller has set the
  // word to how().
  bool sleep(ring::Shared<std::uint32_t> word, std::uint64_t nanoseconds) const;
  // Sleeps for the whole time. Returns false if the process has lost the slot.
  bool timed_sleep(std::uint64_t nanoseconds) const;
  // Wakes those threads of this process that sleep on the word by futex. Other sleepers wake at their time limit.
  void rouse(ring::Shared<std::uint32_t> word) const;

 private:
  Region& region_;
  ring::Asleep how_ = ring::Asleep::No;
  const std::byte* base_ = nullptr;
  mutable Listeners listeners_;  // threads that sleep at a doorbell channel
};

// The durations of timed sleeps. The durations grow during a wait, so that short waits stay short and long waits cost
// little.
inline constexpr std::uint64_t first_sleep_ns = 20'000, longest_sleep_ns = 1'000'000;

}  // namespace guest
