// The meaning of a change in the slot directory. A guest can write any word at any time, so the broker keeps its own
// idea of each slot and lets a guest make only the steps that ring/layout/layout_c.h gives it. Called by the broker, and by the
// explorer; nothing here touches shared memory. Covered by: the model slots and the explorer's scenario slots
// (docs/models.md).
#pragma once

#include "ring/layout/layout.h"
#include "ring/verify/mutants.h"

namespace host::broker {

enum class Step {
  None,
  Claimed,   // a guest process took the slot
  Released,  // its process ended, or another found it dead
  PutBack,   // no step that a guest may make: the broker writes its own word again
};

inline Step step_between(ring::SlotWord known, std::uint32_t seen) {
  using ring::SlotState;
  if (seen == known.word()) return Step::None;
  const bool may_claim = known.state == SlotState::Ready;
  const bool passage = may_claim && !ring::wrong(ring::Mutant::passage_missed);
  const bool may_release = passage || known.held();
  if (may_claim && seen == known.with(SlotState::Claimed).word()) return Step::Claimed;
  // From Ready as well: claimed and released between two looks.
  if (may_release && seen == known.with(SlotState::Released).word()) return Step::Released;
  return Step::PutBack;
}

// The word of a slot that has become Empty: a guest that saw the slot before does not take it for the same one.
inline ring::SlotWord emptied(ring::SlotWord known) {
  return ring::wrong(ring::Mutant::epoch_kept) ? known.with(ring::SlotState::Empty) : known.next();
}

// A worker's end makes the broker look at its slot. True if that look, from `before` to `now`, found it released: then
// it is being emptied already, or has its next worker, and the end is dealt with.
inline bool released_in_look(ring::SlotWord before, ring::SlotWord now) {
  if (ring::wrong(ring::Mutant::end_unchecked)) return false;
  return before.state != ring::SlotState::Released &&
         (now.state == ring::SlotState::Released || now.epoch != before.epoch);
}

}  // namespace host::broker
