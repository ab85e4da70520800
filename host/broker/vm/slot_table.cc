#include "host/broker/vm/slot_table.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "host/broker/region/slot_step.h"
#include "ring/verify/mutants.h"

namespace host::broker {
namespace {

using ring::SlotState;
using ring::SlotWord;

// A claimer writes its owner at once. A claimer that has not after this time died in between.
constexpr auto owner_patience = std::chrono::seconds(2);
constexpr auto between_attempts = std::chrono::milliseconds(10);

}  // namespace

SlotTable::SlotTable(const VmContext& context, const Region& region, Transport& transport, ScrubQueue& scrub_queue,
                     SessionLog& log, VmPersistence& persistence, Acts acts)
    : context_(context),
      region_(region),
      transport_(transport),
      log_(log),
      persistence_(persistence),
      acts_(std::move(acts)),
      slots_(static_cast<std::size_t>(context.options.slots)),
      scrubbers_(scrub_queue, region, context.options.name, slots_.size()) {}

SlotTable::~SlotTable() {
  for (Slot& slot : slots_) context_.loop.forget(slot.empty_timer);
}

std::uint32_t SlotTable::count(SlotState state) const {
  return static_cast<std::uint32_t>(
      std::count_if(slots_.begin(), slots_.end(), [state](const Slot& s) { return s.known.state == state; }));
}

std::uint32_t SlotTable::sessions() const {
  return static_cast<std::uint32_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.known.held(); }));
}

std::optional<std::uint32_t> SlotTable::find(SlotState state) const {
  for (std::uint32_t k = 0; k < size(); ++k)
    if (slots_[k].known.state == state) return k;
  return std::nullopt;
}

// ---- changes by guests in the directory -----------------------------------------------------------------------------

void SlotTable::look_at(std::uint32_t k) {
  Slot& slot = slots_[k];
  const std::uint32_t seen = region_.entry(k)[&ring::SlotEntry::state].load(std::memory_order_acquire);  // A
  const Step step = step_between(slot.known, seen);
  const bool taken = slot.known.state == SlotState::Ready && (step == Step::Claimed || step == Step::Released);
  if (taken || slot.known.state == SlotState::Claimed) acts_.owner_seen(k, region_.owner(k));
  switch (step) {
    case Step::None: release_unowned(k); break;
    case Step::Claimed:
      slot.known = slot.known.with(SlotState::Claimed);
      begin_session(k);
      spdlog::debug("{}: slot {} is claimed by peer {}", context_.options.name, k, region_.owner(k).peer);
      break;
    case Step::Released:
      if (slot.known.state == SlotState::Ready) begin_session(k);  // claimed and released between two looks
      release(k);
      break;
    case Step::PutBack: put_back(k, seen); break;
  }
  learn_owner(k);
  if (slot.known.held()) log_.learn_program(k);
  look_at_pins(k);
  // Its worker has gone, before the claim was seen or while a guest wrote over the word.
  if (slot.known.state == SlotState::Claimed && !acts_.has_worker(k)) move(k, SlotState::Dead);
  persistence_.save(k);
}

void SlotTable::begin_session(std::uint32_t k) {
  slots_[k].peer = 0;
  log_.begin(k);
  acts_.session_begins();
}

void SlotTable::learn_owner(std::uint32_t k) {
  Slot& slot = slots_[k];
  if (!slot.known.held() || slot.peer != 0) return;
  if (const std::uint32_t peer = region_.owner(k).peer; transport_.has(peer)) slot.peer = peer;
}

void SlotTable::release_unowned(std::uint32_t k) {
  Slot& slot = slots_[k];
  if (!slot.known.held() || log_.age(k) < owner_patience) return;
  learn_owner(k);
  // Without connections a real owner cannot be distinguished from garbage; garbage only wastes a slot of its own VM.
  if (slot.peer != 0 || (!transport_.knows_peers() && region_.owner(k).pid != 0)) return;
  std::uint32_t expected = slot.known.word();
  if (region_.entry(k)[&ring::SlotEntry::state].compare_exchange(expected, slot.known.with(SlotState::Released).word(),
                                                                 std::memory_order_acq_rel)) {  // A, B
    release(k);
  }
}

void SlotTable::release_held_by(std::uint32_t peer) {
  for (std::uint32_t k = 0; k < size(); ++k) {
    const std::uint32_t holder = slots_[k].peer != 0 ? slots_[k].peer : region_.owner(k).peer;
    if (holder != peer) continue;
    forget_pins(k);
    release_held(k);
  }
}

void SlotTable::release_held(std::uint32_t k) {
  Slot& slot = slots_[k];
  if (!slot.known.held()) return;
  std::uint32_t expected = slot.known.word();
  const SlotWord released = slot.known.with(SlotState::Released);
  region_.entry(k)[&ring::SlotEntry::state].compare_exchange(expected, released.word(),
                                                             std::memory_order_acq_rel);  // A, B
  release(k);
}

bool SlotTable::release_lost(std::uint32_t k) {
  const Slot& slot = slots_[k];
  if (!slot.known.held() || slot.peer == 0 || transport_.has(slot.peer)) return false;
  release_held(k);
  return true;
}

void SlotTable::forget_pins(std::uint32_t k) {
  if (!ring::wrong(ring::Mutant::pins_outlive)) region_.clear_pinned(k);
  look_at_pins(k);
}

void SlotTable::look_at_pins(std::uint32_t k) {
  if (slots_[k].still_pinned && !region_.pinned(k)) start_emptying(k);
}

// ---- the broker's own steps ----------------------------------------------------------------------------------------

bool SlotTable::move(std::uint32_t k, SlotState to) {
  Slot& slot = slots_[k];
  const SlotWord next = to == SlotState::Empty ? emptied(slot.known) : slot.known.with(to);
  std::uint32_t expected = slot.known.word();
  if (!region_.entry(k)[&ring::SlotEntry::state].compare_exchange(expected, next.word(), std::memory_order_acq_rel))
    return false;
  if (slot.known.state == SlotState::Empty) scrubbers_.stop_slot(k);  // its pages belong to the new worker now
  slot.known = next;                                                  // B
  persistence_.save(k);
  return true;
}

void SlotTable::put_back(std::uint32_t k, std::uint32_t seen) {
  if (const auto more = put_backs_.admit()) {
    spdlog::warn("{}: slot {}: a guest wrote {:#x} over {:#x}; put back{}", context_.options.name, k, seen,
                 slots_[k].known.word(), *more);
  }
  region_.entry(k)[&ring::SlotEntry::state].compare_exchange(seen, slots_[k].known.word(), std::memory_order_acq_rel);
}

void SlotTable::release(std::uint32_t k) {
  Slot& slot = slots_[k];
  slot.known = slot.known.with(SlotState::Released);
  log_.end(k, "");
  persistence_.save(k);
  if (ring::wrong(ring::Mutant::worker_kept) && region_.pinned(k)) return;
  if (acts_.has_worker(k)) {
    acts_.end_worker(k);
  } else {
    start_emptying(k);
  }
}

void SlotTable::start_emptying(std::uint32_t k) {
  Slot& slot = slots_[k];
  context_.loop.forget(slot.empty_timer);
  slot.still_pinned = slot.known.state == SlotState::Released && region_.pinned(k);
  if (ring::wrong(ring::Mutant::pins_unseen)) slot.still_pinned = false;
  if (slot.still_pinned)
    return spdlog::debug("{}: slot {}: its guest's kernel still uses pages of it", context_.options.name, k);
  scrubbers_.scrub_slot(k, [this, k] {
    if (may_be_emptied(k)) make_empty(k);
  });
}

bool SlotTable::may_be_emptied(std::uint32_t k) const {
  const SlotState state = slots_[k].known.state;
  return !acts_.has_worker(k) &&
         (state == SlotState::Starting || state == SlotState::Ready || state == SlotState::Released);
}

// Precondition: may_be_emptied(), and the slot is scrubbed. If a guest claims a Ready slot at the last moment, though
// its worker has gone, the slot becomes Dead instead.
void SlotTable::make_empty(std::uint32_t k) {
  transport_.forget_rings(k);
  if (slots_[k].known.state != SlotState::Ready) region_.clear_owner(k);
  if (!move(k, SlotState::Empty)) {
    look_at(k);
    if (may_be_emptied(k)) {  // the word was put back; a guest that does this often waits longer
      slots_[k].empty_timer = context_.loop.after(between_attempts, [this, k] {
        slots_[k].empty_timer = 0;
        start_emptying(k);
      });
      return;
    }
  }
  acts_.emptied();
}

// ---- across a restart ----------------------------------------------------------------------------------------------

void SlotTable::save(std::uint32_t k, SavedSlot& to) const {
  to.word = slots_[k].known.word();
  to.peer = slots_[k].peer;
}

void SlotTable::adopt(std::uint32_t k, const SavedSlot& was) {
  slots_[k].known = SlotWord::of(was.word);
  slots_[k].peer = was.peer;
}

}  // namespace host::broker
