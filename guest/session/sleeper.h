// How the threads of this process sleep until their worker wakes them: on a futex where both run on one kernel, in
// the guest's kernel module until the slot's interrupt comes, at a bell channel, or not at all. Where nobody wakes
// them they nap, and look again. IVGPU_OFF=wakes has them nap everywhere.
//
// Any thread may call it once the slot is mapped. Sleeping orders no memory: ring/queue/parking.h does, and the sleeper
// looks again in any case. Trust: the worker may wake too often or never; each sleep has a time limit.
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

  // Call it when the slot is mapped at `base`, and before any thread sleeps.
  void begin(const CheckedRegion& checked, std::uint32_t slot, const std::byte* base);

  // How the worker wakes a sleeper that announces it; No: nobody wakes, so nap.
  ring::Asleep how() const { return how_; }

  // Sleeps on a word of the slot while it holds how(), for `nanoseconds` at most. False: the slot is no longer this
  // process's, and nothing of it may be touched. Preconditions: how() is not No, and the word was set to it.
  bool sleep(ring::Shared<std::uint32_t> word, std::uint64_t nanoseconds) const;
  // Sleeps without being woken. False: as above.
  bool nap(std::uint64_t nanoseconds) const;
  // Wakes the threads of this process that sleep on the word, as far as that can be done from here: the others wake at
  // their time limit.
  void rouse(ring::Shared<std::uint32_t> word) const;

 private:
  Region& region_;
  ring::Asleep how_ = ring::Asleep::No;
  const std::byte* base_ = nullptr;
  mutable Listeners listeners_;  // at a bell channel
};

// Naps are the interval at which a thread looks that nobody wakes. They grow during a wait, so that short waits stay
// short and long ones cost little.
inline constexpr std::uint64_t first_nap_ns = 20'000, longest_nap_ns = 1'000'000;

}  // namespace guest
