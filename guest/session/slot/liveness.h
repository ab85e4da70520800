// Whether a session can be used: the session is open, suspended, or lost. Any thread checks this at each call and while
// it waits.
//
// Lost is final: the worker, the broker's connection, the VM's device or the slot has gone, a reply was malformed, or
// the process has left. Suspended is not final: neither broker nor worker answers, so calls fail at once. Later calls
// ask again, and succeed if broker or worker answers and the slot is still this process's
// (docs/design/012-coming-back.md).
//
// Invariant: Lost never changes; Open and Suspended change by compare-and-swap. Trust: the host, and without the kernel
// module every program of the VM, can write the slot's word and the heartbeats. Wrong values can end, suspend or delay
// this session, and do nothing else.
//
// Ordering: none. The condition orders no other memory. A channel reads the condition under the channel's lock, which
// stop_senders() (channels.h) takes after leave().
#pragma once

#include <atomic>
#include <cstdint>

#include "guest/base/switches.h"
#include "guest/region/region.h"
#include "guest/session/slot/claim.h"
#include "guest/session/slot/heartbeat.h"
#include "ring/api/cuda.h"

namespace guest {

// Decides which calls of one thread read the clock. A thread that calls often reads the clock in every 64th call: if the
// clock of timer ticks stands still between two readings, the next 63 calls skip the reading. A thread that calls rarely
// reads the clock in each call, so it notices a silent host as early as before, after at most 63 calls.
class ClockPace {
 public:
  bool skips() { return left_ != 0 && left_-- != 0; }
  void read(std::uint64_t tick) {
    left_ = tick == last_tick_ && switches().clock_skips ? skipped : 0;
    last_tick_ = tick;
  }
  static constexpr std::uint32_t skipped = 63;  // a reading takes 6 ns, so it adds 0.1 ns to each of 64 calls

 private:
  std::uint64_t last_tick_ = 0;
  std::uint32_t left_ = 0;
};

class Liveness {
 public:
  Liveness(Region& region, const SlotClaim& claim, Heartbeat& heartbeat)
      : region_(region), claim_(claim), heartbeat_(heartbeat) {}

  // Returns whether the session was open at the last check, without a look at the host.
  bool usable() const { return condition_.load(std::memory_order_relaxed) == Condition::Open; }
  bool lost() const { return condition_.load(std::memory_order_relaxed) == Condition::Lost; }
  // Returns whether the call may continue. Makes only the checks of the host that are cheap enough for every call, and
  // reopens a suspended session.
  bool attached();
  // Like attached(), for the frequent calls of a thread. Without a reading of the clock, the function reads only words of
  // the session.
  bool attached(ClockPace& pace) { return (usable() && claim_.seems_ours() && pace.skips()) || attached_now(&pace); }
  // Returns whether a waiting call may continue. Checks the worker and the broker.
  bool host_alive();

  // Makes the session lost from now on. Logs `why` the first time.
  void lose(const char* why);
  // Like lose(), when no part of the slot may be touched any more (guest/session/sleeper.h).
  void lose_slot();
  // Like lose(), for a reply that is too short for its call: the guest no longer knows what the host has created or
  // destroyed.
  CUresult lose_to_short_reply() {
    lose("a reply is shorter than its call's");
    return CUDA_ERROR_DEVICE_UNAVAILABLE;
  }
  // Ends the session without a log line, because the process leaves.
  void leave() { condition_.store(Condition::Lost, std::memory_order_relaxed); }

 private:
  bool attached_now(ClockPace* pace);
  void suspend();
  bool loses(Region::Broker broker);  // returns whether this evidence means that the session is lost
  bool comes_back();

  Region& region_;
  const SlotClaim& claim_;
  Heartbeat& heartbeat_;
  enum class Condition : std::uint8_t { Open, Suspended, Lost };
  std::atomic<Condition> condition_{Condition::Open};
  std::atomic<std::uint64_t> last_look_ms_{0};
};

}  // namespace guest
