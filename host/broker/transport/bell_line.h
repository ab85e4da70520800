// The bells of a VM that has an ivshmem-plain device: no doorbell reaches the host, so guests set bits in the region's
// header (ring/layout/layout_c.h, `rung`), and the broker looks at them, for itself and for its workers. It looks often while
// somebody rings and for a second after that, and rarely otherwise. This is the one timer that a VM without sessions has;
// qemu-config/plain.md gives its cost.
//
// Trust: a guest can set any bit at any time. It gets one call per bit and look, and bits of peers that are not there
// are forgotten.
#pragma once

#include <cstdint>
#include <functional>

#include "host/base/event_loop.h"
#include "ring/layout/region_view.h"

namespace host::broker {

class BellLine {
 public:
  struct Pace {
    Clock::duration busy, idle;
  };
  // `rung` is called for each peer below `peers` that was rung, `looked` after each look.
  BellLine(EventLoop& loop, ring::Shared<ring::RegionHeader> header, std::uint32_t peers, Pace pace,
           std::function<void(std::uint32_t peer)> rung, std::function<void()> looked);
  ~BellLine();
  // Looks at once: somebody says that bits are set.
  void look_now();
  BellLine(const BellLine&) = delete;
  BellLine& operator=(const BellLine&) = delete;

 private:
  void look();
  bool take_all();
  bool take(std::uint32_t word);
  void look_again();

  EventLoop& loop_;
  const ring::Shared<ring::RegionHeader> header_;
  const std::uint32_t peers_;
  const Pace pace_;
  std::function<void(std::uint32_t)> rung_;
  std::function<void()> looked_;
  Clock::time_point last_rung_;
  EventLoop::Id timer_ = 0;
};

}  // namespace host::broker
