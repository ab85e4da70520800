// Sleeping and waking across the boundary, without lost wake-ups.
//
//   sleeper                                waker
//   asleep = how                           publish something (tail, reply, executed)
//   fence                    S             fence
//   look once more                         look at `asleep`
//   nothing there? sleep                   set? asleep = 0, then wake
//
// S is a pair of sequentially consistent fences: at least one side sees the other's store. Without either fence, both
// may look before the other's store is visible: the sleeper sleeps, the waker does not wake it, and the call hangs.
//
// A sleeper that waits for one event of many names it before it announces its sleep, and is woken only for that event.
// S covers this, too: a waker that does not see the awaited event has published before the sleeper's second look.
//
// The word states how its owner sleeps (Asleep). A worker always sleeps on a futex. A guest sleeps on a futex of this
// machine, or in a VM's kernel, which checks the word at each interrupt (docs/design/033-guest-module.md). Both sleep
// while the word holds the announced value, so the waker clears it first.
//
// Covered by: the models parking, awaited and doorbell, and the explorer's scenario parking (docs/models.md).
//
// The peer can overwrite both words. At worst it causes a needless wake-up, or hangs its own session: a guest's sleep
// ends with a time-out, a worker's with the session. A value that is no Asleep counts as ByFutex: that wakes a thread
// that waits for the word to change, without descriptor or interrupt.
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

  // Sleeper. Announces the sleep and looks again: `anything` returns whether there is work. True: sleep now while the
  // word holds `how`, then call woke(). False: there is work, and the announcement is withdrawn.
  template <class Anything>
  bool may_sleep(Anything anything, Asleep how = Asleep::ByFutex) {
    asleep_.store(static_cast<std::uint32_t>(how), std::memory_order_relaxed);
    if (!wrong(Mutant::sleeper_fence)) std::atomic_thread_fence(std::memory_order_seq_cst);  // S
    if (wrong(Mutant::sleeper_look) || !anything()) return true;
    woke();
    return false;
  }
  void woke() { asleep_.store(0, std::memory_order_relaxed); }

  // Waker. Called after publishing. Returns how to wake the peer, at most once for each sleep; else No. `awaited`
  // returns whether the peer sleeps for the published event; it is called only if the peer sleeps.
  template <class Awaited>
  Asleep must_wake(Awaited awaited) {
    const bool early = !wrong(Mutant::awaited_early) || awaited();
    if (!wrong(Mutant::waker_fence)) std::atomic_thread_fence(std::memory_order_seq_cst);  // S
    const bool wakes =
        asleep_.load(std::memory_order_relaxed) != 0 && early && (wrong(Mutant::awaited_early) || awaited());
    return wakes ? how_of(asleep_.exchange(0, std::memory_order_relaxed)) : Asleep::No;
  }
  Asleep must_wake() {
    return must_wake([] { return true; });
  }

  // For the worker's doorbell thread, which wakes on another thread's behalf; called before it wakes. A peer that has
  // announced its sleep, but does not sleep yet, stays awake.
  void call_off() {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // S
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
