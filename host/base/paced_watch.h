// A rate-limited watch, for a descriptor that its peer can keep readable for ever. Between callbacks the loop serves
// other clients.
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
  // More doorbells than any program sends: one that sleeps and wakes for each call makes some 10,000 calls a second.
  static constexpr Pace of_doorbells = {20'000, 200};

  // `readable` reads what is available, and may destroy this object. `fd` must stay open as long as this object lives.
  PacedWatch(EventLoop& loop, int fd, std::function<void()> readable, Pace pace = of_doorbells)
      : loop_(loop), fd_(fd), readable_(std::move(readable)), bucket_(pace.per_second, pace.burst, Clock::now()) {
    watch();
  }
  ~PacedWatch() {
    loop_.forget(watch_);
    loop_.forget(pause_);
  }
  PacedWatch(const PacedWatch&) = delete;
  PacedWatch& operator=(const PacedWatch&) = delete;

  // Called by `readable` when it leaves data unread: the watch calls it again after `wait`.
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
    const auto readable = readable_;  // a copy, because `readable` may destroy this object
    readable();
  }

  EventLoop& loop_;
  const int fd_;
  const std::function<void()> readable_;
  TokenBucket bucket_;
  EventLoop::Id watch_ = 0, pause_ = 0;
};

}  // namespace host::broker
