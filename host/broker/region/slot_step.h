// Interprets changes in the slot directory. A guest can write any word at any time, so the broker keeps its own state
// of each slot. It accepts only the steps that ring/layout/layout_c.h allows a guest. Used by the broker and the
// explorer; touches no shared memory. Covered by: the model slots and the explorer's scenario slots (docs/models.md).
#pragma once

#include "ring/layout/layout.h"
#include "ring/verify/mutants.h"

namespace host::broker {

enum class Step {
  None,
  Claimed,   // a guest process took the slot
  Released,  // its process ended, or another process found it dead
  PutBack,   // not allowed for a guest: the broker restores its own word
};

inline Step step_between(ring::SlotWord known, std::uint32_t seen) {
  using ring::SlotState;
  if (seen == known.word()) return Step::None;
  const bool may_claim = known.state == SlotState::Ready;
  const bool passage = may_claim && !ring::wrong(ring::Mutant::passage_missed);
  const bool may_release = passage || known.held();
  if (may_claim && seen == known.with(SlotState::Claimed).word()) return Step::Claimed;
  // Ready to Released is allowed: the slot was claimed and released between two looks.
  if (may_release && seen == known.with(SlotState::Released).word()) return Step::Released;
  return Step::PutBack;
}

// The word of a slot that has become Empty. A new epoch keeps guests from taking it for the old session.
inline ring::SlotWord emptied(ring::SlotWord known) {
  return ring::wrong(ring::Mutant::epoch_kept) ? known.with(ring::SlotState::Empty) : known.next();
}

// After a worker's end the broker looks at its slot. True if that look (`before` to `now`) found the slot released. The
// slot is then already being emptied or has its next worker, and the end is handled.
inline bool released_in_look(ring::SlotWord before, ring::SlotWord now) {
  if (ring::wrong(ring::Mutant::end_unchecked)) return false;
  return before.state != ring::SlotState::Released &&
         (now.state == ring::SlotState::Released || now.epoch != before.epoch);
}

}  // namespace host::broker
