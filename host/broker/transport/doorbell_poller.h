// The doorbell poller of an ivshmem-plain VM. That device has no doorbell: guests set bits in the region's header
// (ring/layout/layout_c.h, `doorbell_bits`). The broker polls these for itself and for its workers. It polls often until a
// second after the last doorbell, and rarely otherwise. A VM without sessions has no other timer; qemu-config/plain.md
// gives its cost.
//
// Trust: a guest can set any bit at any time. Each bit causes one call per look, and bits of unknown peers are ignored.
#pragma once

#include <cstdint>
#include <functional>

#include "host/base/event_loop.h"
#include "ring/layout/region_view.h"

namespace host::broker {

class DoorbellPoller {
 public:
  struct Pace {
    Clock::duration busy, idle;
  };
  // Calls `signalled` for each signalled peer below `peers`, and `looked` after each look.
  DoorbellPoller(EventLoop& loop, ring::Shared<ring::RegionHeader> header, std::uint32_t peers, Pace pace,
                 std::function<void(std::uint32_t peer)> signalled, std::function<void()> looked);
  ~DoorbellPoller();
  // Looks at once, because a guest has reported that bits are set.
  void look_now();
  DoorbellPoller(const DoorbellPoller&) = delete;
  DoorbellPoller& operator=(const DoorbellPoller&) = delete;

 private:
  void look();
  bool take_all();
  bool take(std::uint32_t word);
  void look_again();

  EventLoop& loop_;
  const ring::Shared<ring::RegionHeader> header_;
  const std::uint32_t peers_;
  const Pace pace_;
  std::function<void(std::uint32_t)> signalled_;
  std::function<void()> looked_;
  Clock::time_point last_signalled_;
  EventLoop::Id timer_ = 0;
};

}  // namespace host::broker
