// The steps that a guest may make in the slot directory (ring/layout.h says which). Each is one compare-and-swap from a
// word that was seen, its epoch included, so nobody steps on a slot that has had another holder meanwhile.
//
// Ordering, with the broker's edges A and B (host/broker/vm.h): a claim acquires what was done before Ready; a release
// releases what its process did.
// Covered by: the model slots and the explorer's scenario slots (docs/models.md).
#pragma once

#include <optional>

#include "ring/slot_owner.h"

namespace guest {

inline bool step(ring::SlotEntry& entry, ring::SlotWord from, ring::SlotState to) {
  std::uint32_t word = from.word();
  if (ring::wrong(ring::Mutant::step_by_store))
    return entry.state.load(std::memory_order_acquire) == word &&
           (entry.state.store(from.with(to).word(), std::memory_order_release), true);
  return entry.state.compare_exchange_strong(word, from.with(to).word(), std::memory_order_acq_rel);  // A, B
}

// Takes a slot that is Ready: the word that says so from now on. One whose seal does not let its owner be known goes
// back to the broker, which makes the seal anew. `ring_broker`: void(), called when the word has changed.
template <class RingBroker>
std::optional<ring::SlotWord> claim(ring::SlotEntry& entry, const ring::SlotOwner& self, RingBroker ring_broker) {
  const auto seen = ring::SlotWord::of(entry.state.load(std::memory_order_relaxed));
  if (seen.state != ring::SlotState::Ready || !step(entry, seen, ring::SlotState::Claimed)) return std::nullopt;
  const ring::SlotWord claimed = seen.with(ring::SlotState::Claimed);
  const bool known = ring::write_owner(entry, claimed, self);
  if (!known) step(entry, claimed, ring::SlotState::Released);
  ring_broker();
  return known ? std::optional(claimed) : std::nullopt;
}

// Gives the slot of a process that has died without a word back to the broker. `dead`: bool(const SlotOwner&).
template <class Dead>
bool bury(ring::SlotEntry& entry, Dead dead) {
  const auto seen = ring::SlotWord::of(entry.state.load(std::memory_order_relaxed));
  if (seen.state != ring::SlotState::Claimed && seen.state != ring::SlotState::Dead) return false;
  const auto owner = ring::read_owner(entry, seen);
  return owner && dead(*owner) && step(entry, seen, ring::SlotState::Released);
}

// Gives one's own slot back, whether its worker lives or not.
inline bool release(ring::SlotEntry& entry, ring::SlotWord claimed) {
  return step(entry, claimed.with(ring::SlotState::Claimed), ring::SlotState::Released) ||
         step(entry, claimed.with(ring::SlotState::Dead), ring::SlotState::Released);
}

}  // namespace guest
