// Two limits on how often workers are started: a token bucket, and a pause that grows with failures. The caller passes
// the time, so tests need not wait.
#pragma once

#include <algorithm>
#include <chrono>

namespace host::broker {

using Time = std::chrono::steady_clock::time_point;
using Span = std::chrono::steady_clock::duration;

class TokenBucket {
 public:
  TokenBucket(double per_second, double burst, Time now)
      : per_second_(per_second), burst_(burst), tokens_(burst), last_(now) {}

  // Takes a token and returns zero. If there is none, returns the time after which to ask again.
  [[nodiscard]] Span take(Time now) {
    tokens_ = std::min(burst_, tokens_ + std::chrono::duration<double>(now - last_).count() * per_second_);
    last_ = now;
    if (tokens_ >= 1) {
      tokens_ -= 1;
      return Span::zero();
    }
    const std::chrono::duration<double> wait((1 - tokens_) / per_second_);
    return std::max(std::chrono::duration_cast<Span>(wait), Span(std::chrono::milliseconds(1)));
  }

 private:
  double per_second_, burst_, tokens_;
  Time last_;
};

class Backoff {
 public:
  static constexpr Span shortest = std::chrono::milliseconds(250), longest = std::chrono::seconds(30);

  void failed(Time now) {
    pause_ = pause_ == Span::zero() ? shortest : std::min(pause_ * 2, longest);
    until_ = now + pause_;
  }
  void succeeded() { pause_ = Span::zero(), until_ = Time::min(); }
  // Returns zero if the caller may go on, else the time left to wait.
  Span left(Time now) const { return until_ <= now ? Span::zero() : until_ - now; }

 private:
  Span pause_ = Span::zero();
  Time until_ = Time::min();
};

}  // namespace host::broker
