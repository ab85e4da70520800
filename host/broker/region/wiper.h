// Gives memory of regions back to the machine, or fills huge pages with zeros, in small steps: 4 GiB take most of a second,
// and neither another VM nor the heartbeat may wait that long. One queue serves all VMs of a broker. The VMs take turns at
// it, step by step, so that one with much to wipe does not hold up another's slot; within a VM, the first to come is done
// first. In one turn of the event loop the queue works for a few milliseconds at most, however much there is to do.
//
// Used by the broker's one thread. Nothing is called after Wiper::stop() or the end of a Wiper. The queue outlives its
// wipers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/log_limiter.h"
#include "host/broker/region/region.h"

namespace host::broker {

class Wiper;

class WipeQueue {
 public:
  struct Pace {
    // Less than a millisecond of work, and a whole page where these are huge.
    std::size_t step = ring::huge_page;
    // After this long no further step is begun in the same turn.
    Clock::duration turn = std::chrono::milliseconds(2);
  };

  explicit WipeQueue(EventLoop& loop) : WipeQueue(loop, Pace{}) {}
  WipeQueue(EventLoop& loop, Pace pace) : loop_(loop), pace_(pace) {}
  ~WipeQueue() { loop_.forget(timer_); }
  WipeQueue(const WipeQueue&) = delete;
  WipeQueue& operator=(const WipeQueue&) = delete;

 private:
  friend class Wiper;
  struct Lane {  // of one region; never empty
    const Region* region;
    std::deque<Wiper*> waiting;
  };

  void add(Wiper& wiper);
  void remove(const Wiper& wiper);
  void set_timer();
  void turn();
  void retry_failed();
  void step();

  EventLoop& loop_;
  const Pace pace_;
  std::list<Lane> lanes_;  // the first is the next
  LogLimiter failures_;
  std::vector<Wiper*> failed_;  // each waits for its second to pass
  EventLoop::Id timer_ = 0;     // the only one
  bool working_ = false;
};

// One piece of a region that is wiped as a whole: a slot, or the memory that belongs to no slot.
class Wiper {
 public:
  // `label` begins its lines in the log: "VM: slot 3". `region` outlives it.
  Wiper(WipeQueue& queue, const Region& region, std::vector<Region::Range> ranges, std::string label)
      : queue_(queue), region_(region), ranges_(std::move(ranges)), label_(std::move(label)) {}
  ~Wiper() { stop(); }
  Wiper(const Wiper&) = delete;
  Wiper& operator=(const Wiper&) = delete;

  // Begins from the first byte, even where it was at work; nothing is wiped before it returns. A step that fails is
  // logged and tried again each second, for `done` is a promise: it is called once, when all is wiped. Without `done` a
  // failure is the end of it.
  void start(std::function<void()> done = nullptr);
  void stop() { queue_.remove(*this); }

 private:
  friend class WipeQueue;
  enum class Step { More, Done, Failed };
  Step step(std::size_t bytes);

  WipeQueue& queue_;
  const Region& region_;
  const std::vector<Region::Range> ranges_;
  const std::string label_;
  std::size_t range_ = 0, wiped_ = 0;  // of that range, in bytes
  std::function<void()> done_;
  Clock::time_point retry_;
};

}  // namespace host::broker
