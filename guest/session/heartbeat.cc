#include "guest/session/heartbeat.h"

#include <utility>

#include "guest/region/cache_probe.h"

namespace guest {
namespace {

// After so many questions without an answer the broker counts as gone. One answer may be late on a busy machine, but no
// call should hang for more than a second.
constexpr int broker_patience = 7;

}  // namespace

// Whether the heartbeat has changed since the last look. Under mutex_.
bool Heartbeat::has_moved() {
  const std::uint64_t beat = view_.header()[&ring::RegionHeader::heartbeat].load(std::memory_order_relaxed);
  return beat != std::exchange(last_beat_, beat);
}

// This counts questions and not time, since a paused VM's clock jumps, and a program that seldom calls seldom asks.
bool Heartbeat::beats() {
  std::lock_guard lock(mutex_);
  if (has_moved()) unanswered_ = 0;
  const std::uint64_t now = monotonic_nanoseconds();
  if (now - last_question_ns_ < between_questions_ns) return true;
  if (unanswered_ == broker_patience) return false;
  last_question_ns_ = now;
  ++unanswered_;
  region_.ring(ring::peer_broker);
  return true;
}

bool Heartbeat::answers_again() {
  std::lock_guard lock(mutex_);
  if (has_moved()) return unanswered_ = 0, true;
  const std::uint64_t now = monotonic_nanoseconds();
  if (now - last_question_ns_ < between_questions_ns) return false;
  last_question_ns_ = now;
  region_.ring(ring::peer_broker);
  return false;
}

}  // namespace guest
