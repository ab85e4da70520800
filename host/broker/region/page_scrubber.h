// The page scrubber: frees memory of regions, or fills huge pages with zeros, in small steps. 4 GiB take most of a
// second, and neither other VMs nor the heartbeat may wait that long. One queue serves all VMs round-robin, step by
// step, so that a large range of one VM does not delay another VM's slot. Within a VM, ranges are scrubbed in order of
// arrival. In each loop iteration the queue works for a few milliseconds at most.
//
// Only the broker's event loop uses it. No callback follows Wiper::stop() or a Wiper's destructor. The queue outlives
// its Wipers.
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

class PageScrubber;

class ScrubQueue {
 public:
  struct Pace {
    // Less than a millisecond of work, and one whole huge page.
    std::size_t step = ring::huge_page;
    // No further step begins in the same loop iteration after this time.
    Clock::duration work = std::chrono::milliseconds(2);
  };

  explicit ScrubQueue(EventLoop& loop) : ScrubQueue(loop, Pace{}) {}
  ScrubQueue(EventLoop& loop, Pace pace) : loop_(loop), pace_(pace) {}
  ~ScrubQueue() { loop_.forget(timer_); }
  ScrubQueue(const ScrubQueue&) = delete;
  ScrubQueue& operator=(const ScrubQueue&) = delete;

 private:
  friend class PageScrubber;
  struct RegionQueue {  // of one region; never empty
    const Region* region;
    std::deque<PageScrubber*> waiting;
  };

  void add(PageScrubber& scrubber);
  void remove(const PageScrubber& scrubber);
  void set_timer();
  void work();
  void retry_failed();
  void step();

  EventLoop& loop_;
  const Pace pace_;
  std::list<RegionQueue> queues_;  // the first is next
  LogLimiter failures_;
  std::vector<PageScrubber*> failed_;  // each waits a second for its retry
  EventLoop::Id timer_ = 0;            // the only timer
  bool working_ = false;
};

// Scrubs one part of a region as a whole: a slot, or the memory outside slots.
class PageScrubber {
 public:
  // `label` begins its log lines: "VM: slot 3". `region` outlives this object.
  PageScrubber(ScrubQueue& queue, const Region& region, std::vector<Region::Range> ranges, std::string label)
      : queue_(queue), region_(region), ranges_(std::move(ranges)), label_(std::move(label)) {}
  ~PageScrubber() { stop(); }
  PageScrubber(const PageScrubber&) = delete;
  PageScrubber& operator=(const PageScrubber&) = delete;

  // Starts from the first byte, even if it was running; scrubs nothing before it returns. `done` is called once, when
  // all is scrubbed: a failed step is logged and retried each second. Without `done` it gives up on failure.
  void start(std::function<void()> done = nullptr);
  void stop() { queue_.remove(*this); }

 private:
  friend class ScrubQueue;
  enum class Step { More, Done, Failed };
  Step step(std::size_t bytes);

  ScrubQueue& queue_;
  const Region& region_;
  const std::vector<Region::Range> ranges_;
  const std::string label_;
  std::size_t range_ = 0, scrubbed_ = 0;  // bytes of the current range
  std::function<void()> done_;
  Clock::time_point retry_;
};

}  // namespace host::broker
