#include "guest/session/slot/heartbeat.h"

#include <utility>

#include "guest/region/cache_probe.h"
#include "ring/base/mutex.h"

namespace guest {

// Returns whether either heartbeat has changed since the last look.
bool Heartbeat::has_moved() {
  const std::uint64_t beat = view_.header()[&ring::RegionHeader::heartbeat].load(std::memory_order_relaxed);
  const bool brokers = beat != std::exchange(last_beat_, beat);
  if (!worker_) return brokers;
  const std::uint64_t its = worker_->slot.header()[&ring::SlotHeader::heartbeat].load(std::memory_order_relaxed);
  return its != std::exchange(worker_->last_beat, its) || brokers;
}

// Rings the worker only if the broker did not answer, since a ring also wakes the threads of the worker's channels.
void Heartbeat::ask(std::uint64_t now) {
  last_question_ns_ = now;
  region_.ring(ring::peer_broker);
  if (worker_ && unanswered_ > 0) region_.ring(ring::peer_of_slot(worker_->index));
}

// Counts questions, not time: the clock of a paused VM jumps, and a program that seldom makes calls seldom asks.
bool Heartbeat::beats() {
  ring::MutexLock lock(mutex_);
  if (has_moved()) unanswered_ = 0;
  const std::uint64_t now = monotonic_nanoseconds();
  if (now - last_question_ns_ < between_questions_ns) return true;
  if (unanswered_ >= patience_) return false;
  ask(now);
  ++unanswered_;
  return true;
}

bool Heartbeat::answers_again() {
  ring::MutexLock lock(mutex_);
  if (has_moved()) {
    unanswered_ = 0;
    return true;
  }
  const std::uint64_t now = monotonic_nanoseconds();
  if (now - last_question_ns_ >= between_questions_ns) ask(now);
  return false;
}

}  // namespace guest
