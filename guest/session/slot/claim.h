// This process's claim on a slot of the region. Only the session takes a slot and gives it back, once. Any thread may
// ask whether the slot is still this process's.
//
// Invariant: the slot's word changes only by the steps of slot_step.h. This process makes the steps, or the kernel
// makes them for this process (taking.h). The slot is this process's while the slot's word equals the word that the
// claim stored; the epoch in the word differs for each later owner. Trust: the broker, and without the kernel module
// every program of the VM, can write the directory. Data about other owners decides only about their slots, or goes
// into the log as printable text.
//
// Ordering: slot_step.h describes the edges of the steps. Reading the own word orders nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "guest/region/region.h"
#include "guest/session/slot/heartbeat.h"
#include "guest/session/slot/taking.h"
#include "ring/layout/layout.h"

namespace guest {

class SlotClaim {
 public:
  // How long a program waits for a worker. Starting a worker includes the driver's initialisation, which takes 0.2 to
  // 0.4 s on an idle GPU.
  static constexpr std::uint64_t patience_ns = 20'000'000'000;

  SlotClaim(Region& region, const CheckedRegion& checked, Heartbeat& heartbeat)
      : region_(region), checked_(checked), heartbeat_(heartbeat), taking_(make_taking(region, checked)) {}

  // Waits for a slot until the time `until` (monotonic nanoseconds). Returns false and writes a log line if no slot
  // became free in time, or if the broker does not answer.
  bool take(std::uint64_t until);
  // Returns whether a slot was claimed and not given back.
  bool held() const { return taken_.word.state == ring::SlotState::Claimed && !given_back_; }
  void give_back();

  // Preconditions of the functions below: take() has returned true.
  std::uint32_t slot() const { return taken_.slot; }
  // Returns whether the worker is alive and the slot is this process's.
  bool is_ours() const { return word(std::memory_order_acquire) == taken_.word.word(); }
  // Like is_ours(), with a relaxed load, which is cheap but may be late.
  bool seems_ours() const { return word(std::memory_order_relaxed) == taken_.word.word(); }

 private:
  bool broker_answers();
  bool warn_if_full() const;
  std::uint32_t word(std::memory_order order) const {
    return checked_.view.entry(taken_.slot)[&ring::SlotEntry::state].load(order);
  }

  Region& region_;
  const CheckedRegion& checked_;
  Heartbeat& heartbeat_;
  const std::unique_ptr<Taking> taking_;
  Taking::Taken taken_{};  // fixed once a slot is taken
  bool given_back_ = false;
};

}  // namespace guest
