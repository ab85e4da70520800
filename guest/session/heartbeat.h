// Whether the broker answers: it counts up the heartbeat in the region's header when it is rung
// (docs/design/011-heartbeat.md). The claim asks while it waits for a slot, and liveness while a session lasts. Any
// thread may ask.
//
// Invariant: the broker is rung at most ten times a second, however many threads ask. Trust: every program of the VM
// can write the heartbeat. A wrong heartbeat makes calls fail or wait, and nothing else.
#pragma once

#include <cstdint>
#include <mutex>

#include "guest/region/region.h"

namespace guest {

class Heartbeat {
 public:
  static constexpr std::uint64_t between_questions_ns = 100'000'000;

  Heartbeat(Region& region, const CheckedRegion& checked) : region_(region), view_(checked.view) {}

  // Asks the broker. False: several questions in a row got no answer.
  bool beats();
  // Asks while the session is suspended. True: the heartbeat has changed since the last look.
  bool answers_again();

 private:
  bool has_moved();

  Region& region_;
  const ring::RegionView view_;
  std::mutex mutex_;
  std::uint64_t last_beat_ = 0, last_question_ns_ = 0;
  int unanswered_ = 0;
};

}  // namespace guest
