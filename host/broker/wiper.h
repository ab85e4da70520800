// Gives the memory of one slot back to the machine, in steps: it takes about a second for each 8 GiB, and whoever else
// wants something of the broker need not wait that long, nor may the heartbeat.
//
// Used by the broker's one thread. Nothing is called after stop() or the end of the object.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "host/broker/event_loop.h"
#include "host/broker/region.h"

namespace host::broker {

class Wiper {
 public:
  // `label` begins what it logs. `region` outlives it.
  Wiper(EventLoop& loop, const Region& region, std::uint32_t slot, std::string label)
      : loop_(loop), region_(region), slot_(slot), label_(std::move(label)) {}
  ~Wiper() { stop(); }
  Wiper(const Wiper&) = delete;
  Wiper& operator=(const Wiper&) = delete;

  // Begins from the slot's first byte, even where it was at work, and takes the first step before it returns. A step
  // that fails is logged and tried again each second, for `done` is a promise: it is called once all is wiped. Without
  // `done` a failure is the end of it.
  void start(std::function<void()> done = nullptr);
  void stop() { loop_.forget(timer_); }

 private:
  void step();
  void again(Clock::duration delay);

  EventLoop& loop_;
  const Region& region_;
  const std::uint32_t slot_;
  const std::string label_;
  std::size_t wiped_ = 0;  // bytes
  std::function<void()> done_;
  EventLoop::Id timer_ = 0;
};

}  // namespace host::broker
