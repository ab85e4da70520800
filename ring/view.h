// A slot's extent as typed places. The only way from a mapping to the words of ring/layout.h; it checks nothing, since
// all offsets are constants of the layout but the arena's size, which the holder of the mapping knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ring/layout.h"
#include "ring/queue/record_ring.h"

namespace ring {

class SlotView {
 public:
  SlotView() = default;
  // `base`: where the extent's first byte is mapped; `bytes`: its size, arena included.
  SlotView(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}

  SlotHeader& header() const { return *reinterpret_cast<SlotHeader*>(base_); }
  DevicePage& device_page() const { return *reinterpret_cast<DevicePage*>(base_ + device_page_offset); }
  ChannelControl& control(std::uint32_t channel) const {
    return *reinterpret_cast<ChannelControl*>(base_ + channel_offset(channel));
  }
  RingView requests(std::uint32_t channel) const {
    ChannelControl& c = control(channel);
    return {&c.tail, &c.head, base_ + request_offset(channel), request_bytes};
  }
  std::span<std::byte> reply(std::uint32_t channel) const { return {base_ + reply_offset(channel), reply_bytes}; }

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t arena_bytes() const { return bytes_ > arena_offset ? bytes_ - arena_offset : 0; }

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace ring
