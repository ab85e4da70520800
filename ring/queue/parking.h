// Sleeping and waking across the boundary, without lost wake-ups.
//
//   sleeper                                waker
//   asleep = how                           publish something (tail, reply, executed)
//   fence                    S             fence
//   look once more                         look at `asleep`
//   nothing there? sleep                   set? asleep = 0, then wake
//
// S is a pair of sequentially consistent fences: at least one side sees the other's store. Leave either out and both
// may look before the other's store is visible: the sleeper sleeps, the waker does not wake, and the call hangs.
//
// A sleeper that waits for one thing of many names it before it announces its sleep, and is woken for that alone. S
// covers this, too: a waker that does not see the awaited thing now has published before the sleeper's second look.
//
// The word says how its owner sleeps (Asleep): on a futex of this machine, or in a VM's kernel, which looks at the word
// again when an interrupt comes (docs/design/033-guest-module.md). Both sleep while the word holds what it announces,
// so the waker clears it first. A worker always sleeps on a futex.
//
// Covered by: the models parking, awaited and bell, and the explorer's scenario parking (docs/models.md).
//
// Both words can be scribbled on by the peer; the worst that follows is a needless wake-up, or a sleep of the
// scribbler's own session: the guest's ends with a time-out, the worker's with the session. A value that is no Asleep
// counts as ByFutex, which wakes the thread that waits for the word to change, needs no descriptor, and raises no
// interrupt.
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

  // Sleeper. Announces the sleep and looks once more: `anything` returns whether there is work. True: sleep now (and
  // then call woke()); false: there is work, the announcement is taken back. Sleep only while the word holds `how`.
  template <class Anything>
  bool may_sleep(Anything anything, Asleep how = Asleep::ByFutex) {
    asleep_.store(static_cast<std::uint32_t>(how), std::memory_order_relaxed);
    if (!wrong(Mutant::sleeper_fence)) std::atomic_thread_fence(std::memory_order_seq_cst);  // S
    if (wrong(Mutant::sleeper_look) || !anything()) return true;
    woke();
    return false;
  }
  void woke() { asleep_.store(0, std::memory_order_relaxed); }

  // Waker. Returns how to wake the peer: once for each sleep at most, No otherwise. Ask after publishing. `awaited`
  // returns whether the peer sleeps for the thing that was published; it is called only if the peer sleeps.
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

  // For a thread that wakes on another's behalf (the worker's bell thread), before it wakes: a peer that has announced
  // its sleep, but does not sleep yet, will not.
  void call_off() {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // S
    if (!wrong(Mutant::bell_clear)) woke();
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
