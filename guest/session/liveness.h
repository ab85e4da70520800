// Whether a session can be used: open, suspended, or lost. Any thread asks, at each call and while it waits.
//
// Lost is final: the worker has gone, the connection to the broker has ended, the worker says nonsense, or the process
// has left. Suspended is not: the broker does not answer, so calls fail at once; later ones ask it again, and go on
// where it answers and the slot is still ours (docs/design/012-coming-back.md).
//
// Invariant: nothing leaves Lost; Open and Suspended change by compare-and-swap.
// Trust: the slot's word and the heartbeat can be written by every program of the VM, which can end or suspend this
// session so, and no more.
//
// Ordering: none. The condition hands nothing over; a channel looks at it under its lock, which stop_senders()
// (channels.h) takes after leave().
#pragma once

#include <atomic>
#include <cstdint>

#include "guest/region/region.h"
#include "guest/session/claim.h"
#include "guest/session/heartbeat.h"
#include "ring/api/cuda.h"

namespace guest {

class Liveness {
 public:
  Liveness(Region& region, const SlotClaim& claim, Heartbeat& heartbeat)
      : region_(region), claim_(claim), heartbeat_(heartbeat) {}

  // What is known.
  bool usable() const { return condition_.load(std::memory_order_relaxed) == Condition::Open; }
  bool lost() const { return condition_.load(std::memory_order_relaxed) == Condition::Lost; }
  // Looks as far as every call can afford.
  bool attached();
  // Call it while waiting.
  bool host_alive();

  // Lost, with `why` in the log the first time.
  void lose(const char* why);
  // The same for a reply that holds less than its call's: the guest no longer knows what the host has made or ended.
  CUresult lose_to_nonsense() { return lose("a reply is shorter than its call's"), CUDA_ERROR_DEVICE_UNAVAILABLE; }
  // Lost without a word: the process leaves.
  void leave() { condition_.store(Condition::Lost, std::memory_order_relaxed); }

 private:
  void suspend();
  bool comes_back();

  Region& region_;
  const SlotClaim& claim_;
  Heartbeat& heartbeat_;
  enum class Condition : std::uint8_t { Open, Suspended, Lost };
  std::atomic<Condition> condition_{Condition::Open};
  std::atomic<std::uint64_t> last_look_ms_{0};
};

}  // namespace guest
