// When a VM's next worker may start: a limit on starts per second, a pause that grows with failures, and the timer for
// the next attempt. It also reports the result of the first start, for which the broker's own start waits.
//
// Thread: the broker's event loop, which outlives it.
#pragma once

#include <cstdint>
#include <functional>

#include "host/base/event_loop.h"
#include "host/base/rate.h"

namespace host::broker {

class StartPace {
 public:
  // `try_start` is called for the next attempt.
  StartPace(EventLoop& loop, std::int64_t per_second, std::int64_t burst, std::function<void()> try_start);
  ~StartPace() { stop(); }
  StartPace(const StartPace&) = delete;
  StartPace& operator=(const StartPace&) = delete;

  // Unused starts of the earlier limit are not carried over.
  void limit(std::int64_t per_second, std::int64_t burst);
  // Counts a start and returns true, or arranges the next attempt.
  bool may_start();
  void try_after(Span delay);
  // Arranges an attempt without delay, unless one is arranged.
  void try_soon();
  bool is_waiting() const { return timer_ != 0; }
  void stop() { loop_.forget(timer_); }

  void succeeded() { backoff_.succeeded(); }
  // Returns the pause until the next start.
  Span failed();

  // Calls `warm` once, when a worker is Ready or has failed to start.
  void when_warm(std::function<void()> warm) { warm_ = std::move(warm); }
  void report_warm();

 private:
  EventLoop& loop_;
  const std::function<void()> try_start_;
  TokenBucket starts_;
  Backoff backoff_;
  EventLoop::Id timer_ = 0;
  std::function<void()> warm_;
};

}  // namespace host::broker
