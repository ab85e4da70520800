#include "host/broker/worker/start_pace.h"

#include <utility>

namespace host::broker {
namespace {

TokenBucket bucket(std::int64_t per_second, std::int64_t burst) {
  return {static_cast<double>(per_second), static_cast<double>(burst), Clock::now()};
}

}  // namespace

StartPace::StartPace(EventLoop& loop, std::int64_t per_second, std::int64_t burst, std::function<void()> try_start)
    : loop_(loop), try_start_(std::move(try_start)), starts_(bucket(per_second, burst)) {}

void StartPace::limit(std::int64_t per_second, std::int64_t burst) { starts_ = bucket(per_second, burst); }

bool StartPace::may_start() {
  Span wait = backoff_.left(Clock::now());
  if (wait == Span::zero()) wait = starts_.take(Clock::now());
  if (wait == Span::zero()) return true;
  try_after(wait);
  return false;
}

void StartPace::try_after(Span delay) {
  timer_ = loop_.after(delay, [this] {
    timer_ = 0;
    try_start_();
  });
}

void StartPace::try_soon() {
  if (!is_waiting()) try_after(Span::zero());
}

Span StartPace::failed() {
  backoff_.failed(Clock::now());
  return backoff_.left(Clock::now());
}

void StartPace::report_warm() {
  if (const auto warm = std::exchange(warm_, nullptr)) warm();
}

}  // namespace host::broker
