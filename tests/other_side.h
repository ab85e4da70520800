// Shared memory as the other side has it: plain references to what lies there, without ring/shared/shared.h. For tests that
// are the hostile peer, or that set a scene before anybody else looks; what two threads look at goes by ring::Shared.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ring/view.h"

namespace other_side {

template <class T>
T& at(std::byte* base, std::size_t offset = 0) {
  return *reinterpret_cast<T*>(base + offset);
}

// A word of it as both sides have it.
template <class T>
ring::Shared<T> shared(T& word) {
  return ring::Shared<T>(&word);
}

// Wakes whoever sleeps on a word of it.
inline void wake(ring::Shared<std::uint32_t> word) {
  syscall(SYS_futex, word.futex_word(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

inline ring::RegionHeader& region(std::byte* base) { return at<ring::RegionHeader>(base); }
inline ring::SlotEntry& entry(std::byte* base, std::uint32_t slot) {
  return at<ring::SlotEntry>(base, ring::slot_entry_offset(slot));
}
inline ring::SlotHeader& header(const ring::SlotView& slot) { return at<ring::SlotHeader>(slot.base()); }
inline ring::DevicePage& device_page(const ring::SlotView& slot) {
  return at<ring::DevicePage>(slot.base(), ring::device_page_offset);
}
inline ring::LaneControl& lane(const ring::SlotView& slot, std::uint32_t lane) {
  return at<ring::LaneControl>(slot.base(), ring::lane_offset(lane));
}
inline ring::ChannelControl& control(const ring::SlotView& slot, std::uint32_t channel) {
  return at<ring::ChannelControl>(slot.base(), ring::channel_offset(channel));
}
inline std::span<std::byte> requests(const ring::SlotView& slot, std::uint32_t channel) {
  return {slot.base() + ring::request_offset(channel), ring::request_bytes};
}
inline std::span<std::byte> reply(const ring::SlotView& slot, std::uint32_t channel) {
  return {slot.base() + ring::reply_offset(channel), ring::reply_bytes};
}

}  // namespace other_side
