// The shared region's layout under C++ names, and the functions that compute offsets in the region.
//
// Maps, structs and offsets are in ring/layout/layout_c.h and ring/layout/vm_page_c.h, which C can read. Programs reach
// the structs only through ring/shared/shared.h, which makes each access to a word atomic. Offsets and sizes are in
// bytes, from the start of the region or of the slot. This file has only constants and pure functions, so any thread
// may use them.
//
// ```cpp
// std::size_t used_bytes(std::size_t region_bytes, std::uint32_t slots) {
//   const std::size_t slot_bytes = ring::slot_bytes_for(region_bytes, slots);
//   if (slot_bytes < ring::min_slot_bytes) return 0;  // no guest could start in such a slot
//   return ring::first_slot_offset + slots * slot_bytes;
// }
// ```
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/layout/layout_c.h"
#include "ring/layout/vm_page_c.h"

namespace ring {

inline constexpr std::uint64_t region_magic = IVGPU_REGION_MAGIC;
inline constexpr std::uint64_t slot_magic = IVGPU_SLOT_MAGIC;
inline constexpr std::uint32_t layout_version = IVGPU_LAYOUT_VERSION;
inline constexpr std::uint32_t vm_page_version = IVGPU_VM_PAGE_VERSION;

inline constexpr std::size_t page = IVGPU_PAGE;
inline constexpr std::size_t line = IVGPU_LINE;
inline constexpr std::size_t huge_page = IVGPU_HUGE_PAGE;

inline constexpr std::uint32_t max_slots = IVGPU_MAX_SLOTS;
inline constexpr std::uint32_t doorbell_words = IVGPU_DOORBELL_WORDS;
inline constexpr std::uint32_t max_channels = IVGPU_MAX_CHANNELS;
inline constexpr std::uint32_t max_callback_slots = IVGPU_MAX_CALLBACK_SLOTS;
inline constexpr std::uint32_t max_devices = IVGPU_MAX_DEVICES;
inline constexpr std::uint32_t max_completions = IVGPU_MAX_COMPLETIONS;
inline constexpr std::uint32_t max_attributes = IVGPU_MAX_ATTRIBUTES;
inline constexpr std::uint32_t max_limits = IVGPU_MAX_LIMITS;

inline constexpr std::uint32_t request_bytes = IVGPU_REQUEST_BYTES;
inline constexpr std::uint32_t max_record = IVGPU_MAX_RECORD;
inline constexpr std::uint32_t reply_bytes = IVGPU_REPLY_BYTES;

// The limit for any polling, even if the other side has written a larger value.
inline constexpr std::uint32_t longest_spin_us = 10'000;
// The guest polls this many times as long as its worker, or twice that if its waits last that long. The guest can
// afford this, because a thread that waits for a GPU without ivgpu polls all the time.
inline constexpr std::uint32_t guest_spin_factor = 8;
inline constexpr int heartbeat_ms = 1000;

using RegionHeader = ::IvgpuRegionHeader;
using SlotEntry = ::IvgpuSlotEntry;
using SlotOwner = ::IvgpuSlotOwner;
using VmPage = ::IvgpuVmPage;
using VmGpu = ::IvgpuVmGpu;
using SlotHeader = ::IvgpuSlotHeader;
using DeviceInfo = ::IvgpuDeviceInfo;
using DevicePage = ::IvgpuDevicePage;
using CallbackSlot = ::IvgpuCallbackSlot;
using ChannelControl = ::IvgpuChannelControl;

// ---- the region ----------------------------------------------------------------------------------------------------

// The state of a slot. IvgpuSlotState lists who may change the state.
enum class SlotState : std::uint8_t {
  Empty = IVGPU_SLOT_EMPTY,
  Starting = IVGPU_SLOT_STARTING,
  Ready = IVGPU_SLOT_READY,
  Claimed = IVGPU_SLOT_CLAIMED,
  Released = IVGPU_SLOT_RELEASED,
  Dead = IVGPU_SLOT_DEAD
};

// The parts of SlotEntry::state.
struct SlotWord {
  static constexpr std::uint32_t states = 1u << IVGPU_SLOT_STATE_BITS, epochs = 1u << IVGPU_SLOT_EPOCH_BITS;

  std::uint32_t epoch = 0;
  SlotState state = SlotState::Empty;

  static constexpr SlotWord of(std::uint32_t word) { return {word / states, static_cast<SlotState>(word % states)}; }
  constexpr std::uint32_t word() const { return epoch * states | static_cast<std::uint32_t>(state); }
  constexpr SlotWord with(SlotState s) const { return {epoch, s}; }
  constexpr SlotWord next() const { return {(epoch + 1) % epochs, SlotState::Empty}; }
  // Returns whether a process owns the slot, whether or not the slot's worker is alive.
  constexpr bool held() const { return state == SlotState::Claimed || state == SlotState::Dead; }
};

// The ids of ivshmem peers. The host appears as several peers, so that a guest can ring one worker and wake no other
// thread: the doorbell register takes (peer << 16 | 0). An ivshmem-plain device has no doorbell and uses
// `doorbell_bits` instead.
inline constexpr std::uint32_t peer_broker = 0;
constexpr std::uint32_t peer_of_slot(std::uint32_t slot) { return 1 + slot; }
constexpr std::uint32_t first_guest_peer = 1 + max_slots;

inline constexpr std::size_t directory_offset = IVGPU_DIRECTORY_OFFSET;
inline constexpr std::size_t vm_page_offset = IVGPU_VM_PAGE_OFFSET;
inline constexpr std::size_t region_header_bytes = IVGPU_HEADER_BYTES;
inline constexpr std::size_t vm_gpus_offset = IVGPU_VM_GPUS_OFFSET;
inline constexpr std::size_t header_area_bytes = IVGPU_HEADER_AREA_BYTES;
inline constexpr std::size_t first_slot_offset = IVGPU_FIRST_SLOT_OFFSET;
constexpr std::size_t slot_entry_offset(std::uint32_t slot) { return directory_offset + slot * sizeof(SlotEntry); }

// ---- a slot --------------------------------------------------------------------------------------------------------

inline constexpr std::size_t device_page_offset = IVGPU_DEVICE_PAGE_OFFSET;
inline constexpr std::size_t device_page_bytes = IVGPU_DEVICE_PAGE_BYTES;
inline constexpr std::size_t callback_slots_offset = IVGPU_CALLBACK_SLOTS_OFFSET;
inline constexpr std::size_t first_channel = IVGPU_FIRST_CHANNEL;
inline constexpr std::size_t arena_offset = IVGPU_ARENA_OFFSET;
inline constexpr std::size_t control_bytes = IVGPU_CONTROL_BYTES;
inline constexpr std::size_t channel_bytes = IVGPU_CHANNEL_BYTES;

constexpr std::size_t callback_slot_offset(std::uint32_t callback_slot) {
  return callback_slots_offset + callback_slot * sizeof(CallbackSlot);
}
constexpr std::size_t channel_offset(std::uint32_t channel) { return first_channel + channel * channel_bytes; }
constexpr std::size_t request_offset(std::uint32_t channel) { return channel_offset(channel) + control_bytes; }
constexpr std::size_t reply_offset(std::uint32_t channel) { return request_offset(channel) + request_bytes; }

// The values of `guest_asleep` and `callbacks_asleep`: whether a guest sleeps, and how to wake it.
enum class Asleep : std::uint32_t {
  No = 0,
  ByFutex = IVGPU_ASLEEP_BY_FUTEX,
  ByDoorbell = IVGPU_ASLEEP_BY_DOORBELL,
};

// The values of CallbackSlot::kind.
enum class CallbackKind : std::uint32_t {
  HostFunction = IVGPU_CALLBACK_HOST_FUNCTION,
  StreamCallback = IVGPU_CALLBACK_STREAM_CALLBACK,
  Forget = IVGPU_CALLBACK_FORGET,
};

// Return the bits of SlotHeader::opened: one channel's bit, and the bits of the first n channels.
constexpr std::uint64_t channel_bit(std::uint32_t channel) { return std::uint64_t{1} << channel; }
constexpr std::uint64_t first_channels(std::uint32_t n) { return n < 64 ? channel_bit(n) - 1 : ~std::uint64_t{0}; }

// Divides a region into slots. The size of a slot is a multiple of huge_page; the rest at the region's end is unused.
// The smallest arena lets a guest start: it has space for the staging chunks and a huge page of pinned memory.
inline constexpr std::size_t min_arena_bytes = 5 * huge_page;
inline constexpr std::size_t min_slot_bytes = arena_offset + min_arena_bytes;
constexpr std::size_t slot_bytes_for(std::size_t region_bytes, std::uint32_t slots) {
  if (slots == 0 || region_bytes <= first_slot_offset) return 0;
  return (region_bytes - first_slot_offset) / slots / huge_page * huge_page;
}

// ---- the arena's address -------------------------------------------------------------------------------------------

inline constexpr std::uint32_t window_count = IVGPU_WINDOW_COUNT;
inline constexpr std::uint64_t window_bytes = IVGPU_WINDOW_BYTES;
constexpr std::uint64_t window_address(std::uint32_t window) { return IVGPU_FIRST_WINDOW + window * window_bytes; }

static_assert(IVGPU_SLOT_STATE_BITS + IVGPU_SLOT_EPOCH_BITS == 32);
static_assert(callback_slot_offset(max_callback_slots) <= first_channel &&
              channel_offset(max_channels) <= arena_offset);

}  // namespace ring
