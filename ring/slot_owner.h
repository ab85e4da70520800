// Who holds a slot, in the directory. A claimer takes the slot's word first and writes afterwards who it is, so others
// may read while it writes; and one that is held up between the two, say in a paused VM, may write when the broker has
// given the slot to somebody else. The seal beside the owner's words settles both:
//
//   open(epoch)      nobody has said yet who took the slot
//   sealed           a sum of the epoch and all words of the owner, and by which connection it came
//   given up(epoch)  the broker no longer waits for the claimer, which has probably died
//
// Claimer and broker leave `open` by compare-and-swap, so one of them wins: either the owner is known, or the claimer
// learns that it holds nothing. Processes believe only words that the sum fits; the broker believes the connection
// alone, which one that comes late cannot write over. The sum is not proof against forgery and need not be: the
// processes of a VM are one trust domain.
//
// Ordering: the sum holds the words together, however late each becomes visible, so all is relaxed but for
//   O  owner -> open   the broker's new `open` is seen by who sees the slot Ready (edge B of host/broker/vm.h)
// Covered by: the model slots and the explorer's scenario slots (docs/models.md).
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

#include "ring/layout.h"
#include "ring/mutants.h"

namespace ring {

using OwnerWords = std::array<std::uint64_t, owner_words>;
static_assert(sizeof(OwnerWords) == sizeof(SlotOwner));

// In the seal's lower half; an epoch has 24 bits, a peer has 16.
inline constexpr std::uint32_t seal_closed = 0x8000'0000, seal_given_up = 0x4000'0000;

constexpr std::uint64_t open_seal(std::uint32_t epoch) { return epoch; }
constexpr std::uint64_t given_up_seal(std::uint32_t epoch) { return seal_given_up | epoch; }
constexpr std::uint64_t closed_seal(std::uint32_t epoch, const OwnerWords& words) {
  std::uint64_t sum = 0xcbf2'9ce4'8422'2325ULL ^ epoch;
  for (const std::uint64_t word : words) {
    sum = (sum ^ word) * 0x9e37'79b9'7f4a'7c15ULL;
    sum ^= sum >> 32;
  }
  const std::uint32_t peer = std::bit_cast<SlotOwner>(words).peer & 0xffff;
  return (sum * 0x9e37'79b9'7f4a'7c15ULL >> 32) << 32 | seal_closed | peer;
}

// Claimer, after its compare-and-swap to `claimed`. False: the broker has given the claim up; nothing is held.
inline bool write_owner(SlotEntry& entry, SlotWord claimed, const SlotOwner& owner) {
  const auto words = std::bit_cast<OwnerWords>(owner);
  for (std::size_t i = 0; i < words.size(); ++i) entry.owner[i].store(words[i], std::memory_order_relaxed);
  std::uint64_t open = open_seal(claimed.epoch);
  return entry.owner_seal.compare_exchange_strong(open, closed_seal(claimed.epoch, words), std::memory_order_relaxed);
}

// Anybody. None: not known (yet), or not of this epoch.
inline std::optional<SlotOwner> read_owner(const SlotEntry& entry, SlotWord held) {
  const std::uint64_t seal = entry.owner_seal.load(std::memory_order_relaxed);
  OwnerWords words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = entry.owner[i].load(std::memory_order_relaxed);
  if (seal != closed_seal(held.epoch, words) && !wrong(Mutant::owner_unsealed)) return std::nullopt;
  return std::bit_cast<SlotOwner>(words);
}

// Broker: by which connection the holder came, or 0. Precondition: the slot is held.
inline std::uint32_t sealed_peer(const SlotEntry& entry) {
  const std::uint64_t seal = entry.owner_seal.load(std::memory_order_relaxed);
  return seal & seal_closed ? static_cast<std::uint32_t>(seal & 0xffff) : 0;
}

// Broker. True: the claimer has not said who it is, and will not any more.
inline bool give_up_owner(SlotEntry& entry, SlotWord held) {
  std::uint64_t seal = open_seal(held.epoch);
  if (wrong(Mutant::unowned_by_look)) return entry.owner_seal.load(std::memory_order_relaxed) == seal;
  return entry.owner_seal.compare_exchange_strong(seal, given_up_seal(held.epoch), std::memory_order_relaxed) ||
         seal == given_up_seal(held.epoch);
}

// Broker, before the slot is Empty again, under the epoch it will have then.
inline void clear_owner(SlotEntry& entry, std::uint32_t epoch) {
  for (auto& word : entry.owner) word.store(0, std::memory_order_relaxed);
  entry.owner_seal.store(open_seal(epoch), std::memory_order_relaxed);  // O: Empty, then Ready, are stored behind it
}

}  // namespace ring
