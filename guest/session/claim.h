// This process's claim on a slot of the region. Only the session takes a slot and gives it back, once. Any thread may
// ask whether the slot is still ours.
//
// Invariant: the slot's word changes only by the steps of slot_step.h. The slot is ours as long as it holds the word
// that our step has stored; the epoch in it differs for each later holder. Trust: the broker and every program of the
// VM can write the directory. What this process reads about other holders only decides about their slots, or goes into
// the log as printable letters.
//
// Ordering: slot_step.h names the edges of the steps. A look at our own word orders nothing.
#pragma once

#include <atomic>
#include <cstdint>

#include "guest/region/region.h"
#include "guest/session/heartbeat.h"
#include "ring/layout.h"

namespace guest {

class SlotClaim {
 public:
  // How long a program waits for a worker: starting one costs the driver's initialisation, 0.2 to 0.4 s on an idle GPU.
  static constexpr std::uint64_t patience_ns = 20'000'000'000;

  SlotClaim(Region& region, const CheckedRegion& checked, Heartbeat& heartbeat)
      : region_(region), checked_(checked), heartbeat_(heartbeat) {}

  // Waits for a slot until `until` (monotonic nanoseconds). False and a log line: no slot became free in time, or the
  // broker does not answer.
  bool take(std::uint64_t until);
  // Whether a slot was taken and not given back.
  bool held() const { return claimed_.state == ring::SlotState::Claimed && !given_back_; }
  void give_back();

  // Preconditions of all below: take() has returned true.
  std::uint32_t slot() const { return slot_; }
  // Whether the worker lives and the slot is ours.
  bool is_ours() const { return word(std::memory_order_acquire) == claimed_.word(); }
  // The same with a relaxed load: cheap, but possibly late.
  bool seems_ours() const { return word(std::memory_order_relaxed) == claimed_.word(); }

 private:
  bool try_take(std::uint32_t slot, const ring::SlotOwner& self);
  void free_dead(std::uint32_t slot, const ring::SlotOwner& self);
  bool broker_answers();
  bool warn_if_full() const;
  ring::Shared<ring::SlotEntry> entry(std::uint32_t slot) const { return checked_.view.entry(slot); }
  std::uint32_t word(std::memory_order order) const { return entry(slot_)[&ring::SlotEntry::state].load(order); }

  Region& region_;
  const CheckedRegion& checked_;
  Heartbeat& heartbeat_;
  std::uint32_t slot_ = 0;
  ring::SlotWord claimed_;  // fixed once a slot is taken
  bool given_back_ = false;
};

}  // namespace guest
