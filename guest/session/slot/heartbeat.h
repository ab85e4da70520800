// Whether the host answers. When rung, the broker increments the heartbeat in the region's header
// (docs/design/011-heartbeat.md), and a session's worker increments the heartbeat in its slot
// (docs/design/041-workers-answer.md). While a claim waits for a slot, the broker must answer. During a session, broker
// or worker must answer. Any thread may ask.
//
// Invariant: broker and worker are rung at most ten times a second, however many threads ask. The worker is rung only
// if the previous question had no answer: if only the worker answers, that is every second time. Trust: every program
// of the VM can write the broker's heartbeat, and without the kernel module also the worker's. A wrong heartbeat only
// makes calls fail or wait.
#pragma once

#include <cstdint>
#include <optional>

#include "guest/base/switches.h"
#include "guest/region/region.h"
#include "ring/base/mutex.h"
#include "ring/view.h"

namespace guest {

class Heartbeat {
 public:
  static constexpr std::uint64_t between_questions_ns = 100'000'000;

  Heartbeat(Region& region, const CheckedRegion& checked) : region_(region), view_(checked.view) {}

  // Makes this class ask this slot's worker, too, from now on. Called when the slot is mapped, before any thread asks.
  void ask_worker(const ring::SlotView& slot, std::uint32_t index) {
    const ring::MutexLock lock(mutex_);
    worker_.emplace(Worker{slot, index});
  }

  // Asks the host. Returns false if several questions in a row had no answer.
  bool beats();
  // Asks the host while the session is suspended. Returns true if an answer arrived since the last look.
  bool answers_again();

 private:
  struct Worker {
    ring::SlotView slot;
    std::uint32_t index;
    std::uint64_t last_beat = 0;
  };

  bool has_moved() REQUIRES(mutex_);
  void ask(std::uint64_t now) REQUIRES(mutex_);

  Region& region_;
  const ring::RegionView view_;
  ring::Mutex mutex_;
  std::optional<Worker> worker_ GUARDED_BY(mutex_);
  std::uint64_t last_beat_ GUARDED_BY(mutex_) = 0;
  std::uint64_t last_question_ns_ GUARDED_BY(mutex_) = 0;
  unsigned unanswered_ GUARDED_BY(mutex_) = 0;
  const unsigned patience_ = host_patience();
};

}  // namespace guest
