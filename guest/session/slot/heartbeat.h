// Whether the host answers. The broker counts up the heartbeat in the region's header when it is rung
// (docs/design/011-heartbeat.md), and a session's worker that in its slot's (docs/design/041-workers-answer.md). The claim
// asks while it waits for a slot, the broker alone; liveness asks while a session lasts: one of both has to answer. Any
// thread may ask.
//
// Invariant: broker and worker are rung at most ten times a second, however many threads ask, and the worker only where
// the question before had no answer: every second time, if the worker alone answers. Trust: every program of the VM can
// write the broker's heartbeat, and without the kernel module the worker's. A wrong one makes calls fail or wait, and
// nothing else.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "guest/region/region.h"
#include "guest/switches.h"
#include "ring/view.h"

namespace guest {

class Heartbeat {
 public:
  static constexpr std::uint64_t between_questions_ns = 100'000'000;

  Heartbeat(Region& region, const CheckedRegion& checked) : region_(region), view_(checked.view) {}

  // From now on this slot's worker answers, too. Call it when the slot is mapped and before any thread asks for a session.
  void ask_worker(const ring::SlotView& slot, std::uint32_t index) { worker_.emplace(Worker{slot, index}); }

  // Asks. False: several questions in a row got no answer.
  bool beats();
  // Asks while the session is suspended. True: there was an answer since the last look.
  bool answers_again();

 private:
  struct Worker {
    ring::SlotView slot;
    std::uint32_t index;
    std::uint64_t last_beat = 0;
  };

  bool has_moved();
  void ask(std::uint64_t now);

  Region& region_;
  const ring::RegionView view_;
  std::mutex mutex_;
  std::optional<Worker> worker_;
  std::uint64_t last_beat_ = 0, last_question_ns_ = 0;
  unsigned unanswered_ = 0;
  const unsigned patience_ = host_patience();
};

}  // namespace guest
