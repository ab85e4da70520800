// The log's lines on a VM's sessions: the program that starts one, its length, the reason of its end, and a directory
// without a free slot. Owns what it must know of each slot's session for that.
//
// Callers: the other parts of the same Vm, in the broker's one thread. The region outlives it.
//
// Invariant: each session has at most one line for its start and one for its end, however often it is reported.
//
// Trust: guests cause these lines, and names and process numbers in them are theirs. So their rate is limited.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/log_limiter.h"
#include "host/broker/region/region.h"
#include "host/broker/vm/vm_record.h"

namespace host::broker {

class SessionLog {
 public:
  SessionLog(std::string vm, const Region& region, std::size_t slots)
      : vm_(std::move(vm)), region_(region), sessions_(slots) {}

  void begin(std::uint32_t k);
  // Logs the start once, when the claimer has written its name, or has had the time to. Precondition: the slot is held.
  void learn_program(std::uint32_t k);
  // `why`: the reason of the loss; "": its program has let go of it, or has ended.
  void end(std::uint32_t k, const std::string& why);

  // The broker ends the session for `reason`, a string that lives for ever.
  void set_reason(std::uint32_t k, const char* reason) { sessions_[k].reason = reason; }
  // Null where the broker does not end the session.
  const char* reason(std::uint32_t k) const { return sessions_[k].reason; }

  // The worker of a released slot has not ended in order.
  void worker_ended(std::uint32_t k, const std::string& how);
  // A program waits for a slot, and all are taken.
  void all_slots_taken();

  // Since the claim.
  Clock::duration age(std::uint32_t k) const { return Clock::now() - sessions_[k].claimed; }

  // Its part of the record for the next broker (host/broker/vm/vm_persistence.h).
  void save(std::uint32_t k, SavedSlot& to) const;
  void adopt(std::uint32_t k, const SavedSlot& was);

 private:
  // Starts of sessions logged per second, and ends: enough for a whole test suite.
  static constexpr int session_lines = 20;

  struct Session {
    Clock::time_point claimed;
    // By its own account, which may be anything. Fit for a log.
    std::string program;
    std::uint32_t process = 0;
    bool start_logged = false;
    bool ended = false;  // its end is logged
    const char* reason = nullptr;
  };

  void read_program(std::uint32_t k);
  std::string in_words(std::uint32_t k) const;

  const std::string vm_;
  const Region& region_;
  std::vector<Session> sessions_;
  LogLimiter starts_{session_lines}, ends_{session_lines}, worker_ends_, full_;
};

}  // namespace host::broker
