// Sleeping and waking across the boundary, without lost wake-ups.
//
//   sleeper                                waker
//   asleep = how                           publish something (tail, reply, executed)
//   fence                    S             fence
//   look once more                         look at `asleep`
//   nothing there? sleep                   set? asleep = 0, then wake
//
// S is a pair of sequentially consistent fences: at least one side sees the store of the other side. If either fence is
// missing, both sides may look before they see the other side's store: the sleeper sleeps, the waker does not wake the
// sleeper, and the call hangs.
//
// A sleeper may wait for one event of many. The sleeper then stores the event before it announces its sleep, and is
// woken only for that event. S covers this case, too: a waker that does not see the awaited event has published before
// the sleeper's second look.
//
// The word `asleep` says how the sleeper sleeps (Asleep). A worker always sleeps on a futex. A guest sleeps on a futex
// of this machine, or in a VM's kernel, which checks the word at each interrupt (docs/design/033-guest-module.md). Both
// sleep only while the word has the announced value, so the waker clears the word first.
//
// Covered by: the models parking, awaited and doorbell, and the explorer's scenario parking (docs/models.md).
//
// The peer can overwrite both words. At worst the peer causes a needless wake-up, or hangs its own session: a guest's
// sleep ends with a time-out, and a worker's sleep ends with the session. A value that is no Asleep counts as ByFutex,
// because a futex wake-up needs neither descriptor nor interrupt.
//
// ```cpp
// void wait(ring::Parking self, bool (*anything)(), void (*sleep_while)(ring::Shared<std::uint32_t> word)) {
//   while (!anything()) {
//     if (!self.may_sleep(anything)) continue;
//     sleep_while(self.word());  // FUTEX_WAIT; the other side publishes, then asks must_wake()
//     self.woke();
//   }
// }
// ```
#pragma once

#include <atomic>
#include <cstdint>

#include "ring/layout/layout.h"
#include "ring/shared/shared.h"
#include "ring/verify/mutants.h"

namespace ring {

class Parking {
 public:
  explicit Parking(Shared<std::uint32_t> asleep) : asleep_(asleep) {}

  // For the sleeper. Announces the sleep and looks again; `anything` returns whether there is work. Returns true if the
  // caller must sleep now, while the word equals `how`, and then call woke(). Returns false if there is work; the
  // announcement is then withdrawn.
  template <class Anything>
  bool may_sleep(Anything anything, Asleep how = Asleep::ByFutex) {
    asleep_.store(static_cast<std::uint32_t>(how), std::memory_order_relaxed);
    if (!wrong(Mutant::sleeper_fence)) std::atomic_thread_fence(std::memory_order_seq_cst);  // edge S
    if (wrong(Mutant::sleeper_look) || !anything()) return true;
    woke();
    return false;
  }
  void woke() { asleep_.store(0, std::memory_order_relaxed); }

  // For the waker, after publishing. Returns how to wake the peer, at most once for each sleep; else No. `awaited`
  // returns whether the peer sleeps for the published event; it is called only if the peer sleeps.
  template <class Awaited>
  Asleep must_wake(Awaited awaited) {
    const bool early = !wrong(Mutant::awaited_early) || awaited();
    if (!wrong(Mutant::waker_fence)) std::atomic_thread_fence(std::memory_order_seq_cst);  // edge S
    const bool wakes =
        asleep_.load(std::memory_order_relaxed) != 0 && early && (wrong(Mutant::awaited_early) || awaited());
    return wakes ? how_of(asleep_.exchange(0, std::memory_order_relaxed)) : Asleep::No;
  }
  Asleep must_wake() {
    return must_wake([] { return true; });
  }

  // For the worker's doorbell thread, which wakes a thread for another one. The doorbell thread calls this before it
  // wakes the peer. A peer that has announced its sleep, but does not sleep yet, stays awake.
  void call_off() {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // edge S
    if (!wrong(Mutant::doorbell_clear)) woke();
  }

  Shared<std::uint32_t> word() const { return asleep_; }

 private:
  static Asleep how_of(std::uint32_t word) {
    const auto how = static_cast<Asleep>(word);
    return how == Asleep::No || how == Asleep::ByDoorbell ? how : Asleep::ByFutex;
  }

  Shared<std::uint32_t> asleep_;
};

}  // namespace ring
