// A watch of a descriptor that the other side can keep readable for ever: it calls back so often a second at most, and
// lets the loop serve others meanwhile.
#pragma once

#include <poll.h>

#include <functional>
#include <utility>

#include "host/base/event_loop.h"
#include "host/base/rate.h"

namespace host::broker {

class PacedWatch {
 public:
  struct Pace {
    double per_second, burst;
  };
  // More than any program rings: one that sleeps and wakes for each call makes some 10,000 calls a second.
  static constexpr Pace of_bells = {20'000, 200};

  // `readable` takes what there is; it may destroy this object. The descriptor stays open as long as this lives.
  PacedWatch(EventLoop& loop, int fd, std::function<void()> readable, Pace pace = of_bells)
      : loop_(loop), fd_(fd), readable_(std::move(readable)), bucket_(pace.per_second, pace.burst, Clock::now()) {
    watch();
  }
  ~PacedWatch() {
    loop_.forget(watch_);
    loop_.forget(pause_);
  }
  PacedWatch(const PacedWatch&) = delete;
  PacedWatch& operator=(const PacedWatch&) = delete;

  // From within `readable`, which has left what there is: it is called again after `wait`.
  void pause(Span wait) {
    loop_.forget(watch_);
    pause_ = loop_.after(wait, [this] {
      pause_ = 0;
      watch();
    });
  }

 private:
  void watch() {
    watch_ = loop_.watch(fd_, POLLIN, [this](short) { ready(); });
  }
  void ready() {
    if (const Span wait = bucket_.take(Clock::now()); wait > Span::zero()) return pause(wait);
    const auto readable = readable_;  // it outlives this object
    readable();
  }

  EventLoop& loop_;
  const int fd_;
  const std::function<void()> readable_;
  TokenBucket bucket_;
  EventLoop::Id watch_ = 0, pause_ = 0;
};

}  // namespace host::broker
