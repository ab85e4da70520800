// The steps that a guest may make in the slot directory (ring/layout/layout_c.h lists them): take a slot, give the slot of a
// dead process back, give one's own slot back. The session and the tests' explorer call them.
//
// Invariant: each step is one compare-and-swap from a word that was seen, its epoch included. So no step succeeds on a
// slot that has had another holder meanwhile. Trust: the broker and other guests write what is read here. A slot's
// owner is a hint, which only decides about that slot.
//
// Ordering: edges A and B, which host/broker/vm/vm.h explains. A claim sees everything that was done before Ready. A guest
// that judges an owner does not see an owner from before this holder's claim. A release makes visible what its process
// did. Covered by: the model slots and the explorer's scenario slots (docs/models.md). Covered by nothing: that a guest
// sees an owner whole, and that it is written before the broker's patience ends.
#pragma once

#include <optional>

#include "ring/layout/layout.h"
#include "ring/shared/shared.h"
#include "ring/verify/mutants.h"

namespace guest {

inline bool step(ring::Shared<ring::SlotEntry> entry, ring::SlotWord from, ring::SlotState to) {
  const auto state = entry[&ring::SlotEntry::state];
  std::uint32_t word = from.word();
  if (ring::wrong(ring::Mutant::step_by_store))
    return state.load(std::memory_order_acquire) == word &&
           (state.store(from.with(to).word(), std::memory_order_release), true);
  return state.compare_exchange(word, from.with(to).word(), std::memory_order_acq_rel);  // A, B
}

// Takes a slot that is Ready. Returns the slot's word from now on, or nothing if another process was faster. `self` is
// made beforehand, so that little time passes between the two stores: a process that dies there leaves a slot whose
// owner is unknown.
inline std::optional<ring::SlotWord> claim(ring::Shared<ring::SlotEntry> entry, const ring::SlotOwner& self) {
  const auto seen = ring::SlotWord::of(entry[&ring::SlotEntry::state].load(std::memory_order_relaxed));
  if (seen.state != ring::SlotState::Ready) return std::nullopt;
  const bool early = ring::wrong(ring::Mutant::owner_early);
  if (early) entry[&ring::SlotEntry::owner].copy_in(self);
  if (!step(entry, seen, ring::SlotState::Claimed)) return std::nullopt;
  if (!early) entry[&ring::SlotEntry::owner].copy_in(self);
  return seen.with(ring::SlotState::Claimed);
}

// Gives the slot of a process that has died without giving it back to the broker. `dead`: bool(const SlotOwner&).
template <class Dead>
bool bury(ring::Shared<ring::SlotEntry> entry, Dead dead) {
  auto seen = ring::SlotWord::of(
      entry[&ring::SlotEntry::state].load(std::memory_order_acquire));  // B: and the owner cleared before it
  if (!seen.held() || !dead(entry[&ring::SlotEntry::owner].copy_out())) return false;
  if (ring::wrong(ring::Mutant::buried_unseen))
    seen = ring::SlotWord::of(entry[&ring::SlotEntry::state].load(std::memory_order_relaxed));
  return seen.held() && step(entry, seen, ring::SlotState::Released);
}

// Gives this process's slot back, whether its worker lives or not.
inline bool release(ring::Shared<ring::SlotEntry> entry, ring::SlotWord claimed) {
  if (step(entry, claimed.with(ring::SlotState::Claimed), ring::SlotState::Released)) return true;
  if (ring::wrong(ring::Mutant::dead_kept)) return false;
  return step(entry, claimed.with(ring::SlotState::Dead), ring::SlotState::Released);
}

}  // namespace guest
