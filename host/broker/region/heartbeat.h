// The heartbeat in a region's header, by which a waiting guest sees that the broker lives. Owns the counter, and a slow
// timer that looks after guests which send no doorbell.
//
// Thread: the broker's event loop. Loop and region outlive it.
#pragma once

#include <cstdint>
#include <functional>

#include "host/base/event_loop.h"
#include "host/broker/region/region.h"

namespace host::broker {

class Heartbeat {
 public:
  struct Acts {
    std::function<bool()> is_needed;  // a guest may be waiting
    std::function<void()> look;       // sees what guests have changed
  };

  Heartbeat(EventLoop& loop, const Region& region, Acts acts) : loop_(loop), region_(region), acts_(std::move(acts)) {}
  ~Heartbeat() { stop(); }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // Answers a guest that sends a doorbell because it waits.
  void beat();
  // Sets the timer if it is needed, else stops it.
  void beat_while_needed();
  // Continues the count of an earlier broker.
  void adopt();
  // The broker ends: it does not answer doorbells, and the timer increments the counter instead.
  void begin_end();
  void stop() { loop_.forget(timer_); }

 private:
  EventLoop& loop_;
  const Region& region_;
  const Acts acts_;
  std::uint64_t count_ = 0;
  bool ending_ = false;
  EventLoop::Id timer_ = 0;
};

}  // namespace host::broker
