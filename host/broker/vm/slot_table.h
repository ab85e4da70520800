// The broker's own view of a VM's slots: owns each slot's state, its epoch, the connection that holds it, and its
// scrubber. It takes the steps from one state to the next: it ends a released slot's worker, scrubs the slot and makes it Empty.
//
// ring/layout/layout_c.h describes the life of a slot. A released slot of which the guest's kernel still uses pages
// (SlotEntry::pinned) loses its worker at once. It is scrubbed when the kernel has released the pages, or when the guest
// has ended.
//
// Callers: the other parts of the same Vm, in the broker's event loop. What the constructor takes outlives it.
//
// Trust: the directory is a hint that guests give. The table believes its own word of each slot, and only steps that
// slot_step.h allows change it; it restores every other word. A guest can waste its own VM's slots, nothing else:
// `pinned` counts in a released slot alone, where it can only keep that slot from being used.
//
// Orderings. A: a look acquires everything that a guest released with its compare-and-swap (its process's work, before
// Released), and so does a look at `pinned` (what a device wrote last, before 0). B: the broker's steps release its work
// before them (the scrubbing, before Empty; the worker's filling, before Ready). Covered by: the model slots and the
// explorer's scenario slots (docs/models.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/log_limiter.h"
#include "host/broker/region/region.h"
#include "host/broker/region/region_scrubbers.h"
#include "host/broker/transport/transport.h"
#include "host/broker/vm/session_log.h"
#include "host/broker/vm/vm_context.h"
#include "host/broker/vm/vm_persistence.h"

namespace host::broker {

class SlotTable {
 public:
  // Requests to the other parts.
  struct Acts {
    std::function<bool(std::uint32_t k)> has_worker;
    // Precondition: has_worker(k).
    std::function<void(std::uint32_t k)> end_worker;
    // The slot is claimed, and its process has written this about itself.
    std::function<void(std::uint32_t k, const ring::SlotOwner& owner)> owner_seen;
    std::function<void()> session_begins;
    // A slot can have a worker again.
    std::function<void()> emptied;
  };

  SlotTable(const VmContext& context, const Region& region, Transport& transport, ScrubQueue& scrub_queue,
            SessionLog& log, VmPersistence& persistence, Acts acts);
  ~SlotTable();
  SlotTable(const SlotTable&) = delete;
  SlotTable& operator=(const SlotTable&) = delete;

  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }
  ring::SlotWord word(std::uint32_t k) const { return slots_[k].known; }
  ring::SlotState state(std::uint32_t k) const { return slots_[k].known.state; }
  // Released and without a worker, but its pages are still in use.
  bool is_pinned(std::uint32_t k) const { return slots_[k].still_pinned; }
  std::uint32_t count(ring::SlotState state) const;
  // Slots held by a program, with a worker or without.
  std::uint32_t sessions() const;
  std::optional<std::uint32_t> find(ring::SlotState state) const;

  RegionScrubbers& scrubbers() { return scrubbers_; }

  // Sees what guests have changed.
  void look_at(std::uint32_t k);
  // Its program has ended, in whatever way.
  void release_held(std::uint32_t k);
  void release_held_by(std::uint32_t peer);
  // Releases a slot whose connection did not outlive the earlier broker; false if that is not the case.
  bool release_lost(std::uint32_t k);
  // The guest's kernel that used pages of the slot has ended.
  void forget_pins(std::uint32_t k);
  // Changes nothing and returns false if a guest has changed the word meanwhile; a look then handles that change.
  bool move(std::uint32_t k, ring::SlotState to);
  // Precondition: the slot has no worker any more.
  void start_emptying(std::uint32_t k);

  // Its part of the record for the next broker (host/broker/vm/vm_persistence.h).
  void save(std::uint32_t k, SavedSlot& to) const;
  void adopt(std::uint32_t k, const SavedSlot& was);

 private:
  struct Slot {
    ring::SlotWord known;
    // The connection that holds it; taken from the owner's word once, if that connection exists.
    std::uint32_t peer = 0;
    bool still_pinned = false;
    EventLoop::Id empty_timer = 0;  // next attempt to make it Empty, after a guest wrote over its word
  };

  void begin_session(std::uint32_t k);
  void learn_owner(std::uint32_t k);
  void look_at_pins(std::uint32_t k);
  void release_unowned(std::uint32_t k);
  void release(std::uint32_t k);
  void put_back(std::uint32_t k, std::uint32_t seen);
  bool may_be_emptied(std::uint32_t k) const;
  void make_empty(std::uint32_t k);

  const VmContext& context_;
  const Region& region_;
  Transport& transport_;
  SessionLog& log_;
  VmPersistence& persistence_;
  const Acts acts_;
  std::vector<Slot> slots_;
  RegionScrubbers scrubbers_;
  LogLimiter put_backs_;
};

}  // namespace host::broker
