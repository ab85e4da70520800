// What an object remembers for the order of host threads (guest/session/order.h): the last posted call that named it.
//
// Thread-safety: any thread, no lock. Nothing is handed over by the word itself: a program that uses an object from two
// threads has ordered them itself, so who looks sees the other's use. That the use was executed is what another word
// says (`executed`, edge X in host/untrusted/channel.cc), so all accesses here are relaxed.
// Covered by: the model order and the explorer's scenario order (docs/models.md).
#pragma once

#include <atomic>
#include <cstdint>

#include "ring/mutants.h"

namespace guest {

// Where a posted call stands: which channel, which record. 0 is none.
struct Use {
  std::uint32_t channel = 0;
  std::uint64_t position = 0;
  constexpr std::uint64_t packed() const { return ((std::uint64_t{channel} + 1) << 56) | position; }
  static constexpr Use of(std::uint64_t packed) {
    return {static_cast<std::uint32_t>((packed >> 56) - 1), packed & ((1ULL << 56) - 1)};
  }
};

// Whether the record of a use has been executed, as the session knows (guest/session/order.h).
using Executed = bool (*)(Use);
// For objects without a session: nothing is under way.
inline bool nothing_under_way(Use) { return true; }

class LastUse {
 public:
  // Stands for several uses, none of which is known to be executed: a wait for one of them was given up. Who touches
  // the object waits for every channel.
  static constexpr std::uint32_t any_channel = 0xfe;
  static constexpr std::uint64_t several = Use{any_channel, 0}.packed();

  // Waits until the last use by another channel than `mine` was executed. `await`: bool(Use), false if the session is
  // lost; then so is this.
  template <class Await>
  bool await_others(std::uint32_t mine, Await await) const {
    const std::uint64_t last = word_.load(std::memory_order_relaxed);
    if (last == 0 || Use::of(last).channel == mine || ring::wrong(ring::Mutant::order_not_awaited)) return true;
    return await(Use::of(last));
  }

  // Another use. Threads may use one object at a time, in either order, but it remembers one use: so the other's is
  // executed before it is forgotten, and a wait for the one that is remembered covers both. Where that wait is
  // given up, `several` is remembered.
  template <class Await>
  void remember(Use use, Await await) {
    std::uint64_t last = word_.load(std::memory_order_relaxed);
    do {
      const Use before = Use::of(last);
      const bool same_channel = last != 0 && before.channel == use.channel;
      const bool older = same_channel && before.position > use.position;  // threads that share a channel
      if (older && !ring::wrong(ring::Mutant::use_set_back)) return;
      if (last != 0 && !same_channel && !ring::wrong(ring::Mutant::use_forgotten) && !await(before))
        return word_.store(several, std::memory_order_relaxed);
    } while (!word_.compare_exchange_weak(last, use.packed(), std::memory_order_relaxed, std::memory_order_relaxed));
  }

  // Packed; for comparing with what it was before.
  std::uint64_t now() const { return word_.load(std::memory_order_relaxed); }

  void forget() { word_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> word_{0};  // Use::packed; 0: none
};

}  // namespace guest
