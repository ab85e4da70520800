// How threads of this process sleep until their worker wakes them. They sleep on a futex if both run on one kernel, in
// the guest's kernel module until the slot's interrupt, or at a doorbell channel. If none of these exists, they use
// timed sleeps and look again. IVGPU_OFF=wakes makes them do so everywhere.
//
// Any thread may call it once the slot is mapped. Sleeping orders no memory: ring/queue/parking.h does, and the sleeper
// looks again anyway. Trust: the worker may wake too often or never; each sleep has a time limit.
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

  // How the worker wakes a sleeper that announces it. No: only timed sleeps are possible.
  ring::Asleep how() const { return how_; }

  // Sleeps on a word of the slot while it holds how(), for `nanoseconds` at most. False: the process has lost the slot
  // and must touch nothing of it. Preconditions: how() is not No, and the word was set to how().
  bool sleep(ring::Shared<std::uint32_t> word, std::uint64_t nanoseconds) const;
  // Sleeps for the whole time. False: the process has lost the slot.
  bool timed_sleep(std::uint64_t nanoseconds) const;
  // Wakes this process's threads that sleep on the word by futex. Other sleepers wake at their time limit.
  void rouse(ring::Shared<std::uint32_t> word) const;

 private:
  Region& region_;
  ring::Asleep how_ = ring::Asleep::No;
  const std::byte* base_ = nullptr;
  mutable Listeners listeners_;  // at a doorbell channel
};

// The intervals of timed sleeps. They grow during a wait: short waits stay short and long ones cost little.
inline constexpr std::uint64_t first_sleep_ns = 20'000, longest_sleep_ns = 1'000'000;

}  // namespace guest
