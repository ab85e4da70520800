// Shared memory as plain references, without ring/shared/shared.h. For tests that stand in for a hostile peer, or that
// prepare memory before another thread reads it. Words that two threads access concurrently go through ring::Shared.
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

// The word as a ring::Shared, for concurrent access.
template <class T>
ring::Shared<T> shared(T& word) {
  return ring::Shared<T>(&word);
}

// Wakes all threads that sleep on the word.
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
inline ring::CallbackSlot& callback_slot(const ring::SlotView& slot, std::uint32_t callback_slot) {
  return at<ring::CallbackSlot>(slot.base(), ring::callback_slot_offset(callback_slot));
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
