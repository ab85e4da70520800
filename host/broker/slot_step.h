// What a change in the slot directory means. A guest can write any word at any time, so the broker keeps its own idea
// of each slot and lets a guest make only the steps that ring/layout.h gives it.
#pragma once

#include "ring/layout.h"

namespace host::broker {

enum class Step {
  None,
  Claimed,   // a guest process took the slot
  Released,  // its process ended, or another found it dead
  PutBack,   // no step that a guest may make: the word goes back to what the broker knows
};

constexpr Step step_between(ring::SlotWord known, std::uint32_t seen) {
  using ring::SlotState;
  if (seen == known.word()) return Step::None;
  const bool may_claim = known.state == SlotState::Ready;
  const bool may_release = may_claim || known.state == SlotState::Claimed || known.state == SlotState::Dead;
  if (may_claim && seen == known.with(SlotState::Claimed).word()) return Step::Claimed;
  // From Ready as well: claimed and released between two looks.
  if (may_release && seen == known.with(SlotState::Released).word()) return Step::Released;
  return Step::PutBack;
}

}  // namespace host::broker
