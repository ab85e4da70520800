// The steps that a guest may make in the slot directory (ring/layout/layout_c.h): claim a slot, and give back its own
// slot or a dead process's. The session and the tests' explorer call these functions.
//
// Invariant: each step is one compare-and-swap from a word that was read before, epoch included. No step succeeds on a
// slot that has had another owner meanwhile. Trust: the broker and other guests write the entries. A slot's owner entry
// is a hint, which decides only about that slot.
//
// Ordering: edges A and B, which host/broker/vm/slot_table.h explains. A claim sees everything done before Ready. A
// guest that judges a slot's owner entry sees no entry older than the owner's claim. A release makes the process's
// earlier writes visible. Covered by: the model slots and the explorer's scenario slots (docs/models.md). No test
// covers that a guest sees an owner whole, and that the owner is written before the broker's patience ends.
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
  return state.compare_exchange(word, from.with(to).word(), std::memory_order_acq_rel);  // edges A and B
}

// Claims a Ready slot. Returns the slot's new word, or nothing if another process was faster. The caller prepares
// `self` beforehand, to shorten the time between the two stores: a process that dies between the stores leaves a slot
// with an unknown owner.
inline std::optional<ring::SlotWord> claim(ring::Shared<ring::SlotEntry> entry, const ring::SlotOwner& self) {
  const auto seen = ring::SlotWord::of(entry[&ring::SlotEntry::state].load(std::memory_order_relaxed));
  if (seen.state != ring::SlotState::Ready) return std::nullopt;
  const bool early = ring::wrong(ring::Mutant::owner_early);
  if (early) entry[&ring::SlotEntry::owner].copy_in(self);
  if (!step(entry, seen, ring::SlotState::Claimed)) return std::nullopt;
  if (!early) entry[&ring::SlotEntry::owner].copy_in(self);
  return seen.with(ring::SlotState::Claimed);
}

// Gives a dead process's slot back to the broker. `dead`: bool(const SlotOwner&), returns whether the owner is dead.
template <class Dead>
bool bury(ring::Shared<ring::SlotEntry> entry, Dead dead) {
  auto seen = ring::SlotWord::of(
      // Edge B; the broker also cleared the owner before it stored this word.
      entry[&ring::SlotEntry::state].load(std::memory_order_acquire));
  if (!seen.held() || !dead(entry[&ring::SlotEntry::owner].copy_out())) return false;
  if (ring::wrong(ring::Mutant::buried_unseen))
    seen = ring::SlotWord::of(entry[&ring::SlotEntry::state].load(std::memory_order_relaxed));
  return seen.held() && step(entry, seen, ring::SlotState::Released);
}

// Gives this process's slot back, whether or not the slot's worker is alive.
inline bool release(ring::Shared<ring::SlotEntry> entry, ring::SlotWord claimed) {
  if (step(entry, claimed.with(ring::SlotState::Claimed), ring::SlotState::Released)) return true;
  if (ring::wrong(ring::Mutant::dead_kept)) return false;
  return step(entry, claimed.with(ring::SlotState::Dead), ring::SlotState::Released);
}

}  // namespace guest
