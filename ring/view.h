// Typed access to a slot's extent. All code accesses a slot's words through this class (ring/layout/layout.h).
//
// A SlotView checks nothing: all offsets are constants of the layout, and the owner of the mapping knows the arena's
// size. A SlotView owns nothing: the caller maps the extent, and unmaps it when no view is used any more. Sizes are in
// bytes. Any thread may use a SlotView. Callers keep channels below max_channels and callback slots below
// max_callback_slots.
//
// ```cpp
// std::uint64_t executed(std::byte* extent, std::uint32_t channel) {
//   const ring::SlotView slot(extent, ring::min_slot_bytes);
//   const auto magic = slot.header()[&ring::SlotHeader::magic].load(std::memory_order_acquire);
//   if (magic != ring::slot_magic) return 0;  // its worker is not ready
//   return slot.control(channel)[&ring::ChannelControl::executed].load(std::memory_order_acquire);
// }
// ```
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/layout/layout.h"
#include "ring/queue/record_ring.h"
#include "ring/shared/shared.h"

namespace ring {

class SlotView {
 public:
  SlotView() = default;
  // `base`: the address of the extent's first byte; `bytes`: the extent's size, arena included.
  SlotView(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}

  Shared<SlotHeader> header() const { return shared_at<SlotHeader>(base_, 0); }
  // Copies the header's first cache line. The worker fills this line before it stores the magic, and never changes it.
  SlotHeader copy_terms() const {
    SlotHeader terms{};
    SharedBytes(base_, offsetof(SlotHeader, fault)).copy_out(&terms, 0, offsetof(SlotHeader, fault));
    return terms;
  }
  Shared<DevicePage> device_page() const { return shared_at<DevicePage>(base_, device_page_offset); }
  Shared<CallbackSlot> callback_slot(std::uint32_t callback_slot) const {
    return shared_at<CallbackSlot>(base_, callback_slot_offset(callback_slot));
  }
  Shared<ChannelControl> control(std::uint32_t channel) const {
    return shared_at<ChannelControl>(base_, channel_offset(channel));
  }
  RingView requests(std::uint32_t channel) const {
    const Shared<ChannelControl> c = control(channel);
    return {c[&ChannelControl::tail], c[&ChannelControl::head], {base_ + request_offset(channel), request_bytes}};
  }
  SharedBytes reply(std::uint32_t channel) const { return {base_ + reply_offset(channel), reply_bytes}; }

  // Returns the extent's address: to map the extent elsewhere, to unmap it, and for tests, which act as the other side.
  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t arena_bytes() const { return bytes_ > arena_offset ? bytes_ - arena_offset : 0; }

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace ring
