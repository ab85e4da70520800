// The shared region on one page: what lies where in the memory that a VM's guest, its workers and the GPU all map.
//
//   region     one for each VM: BAR2 of its ivshmem device, and one sealed memfd on the host. All of it is memory that
//              was granted to the VM.
//   slot       one for each guest process (session): a fixed, page-disjoint extent of the region. Its worker maps this
//              extent and nothing else.
//   channel    one for each guest thread: a request ring, a reply mailbox, an executed counter, completion words.
//   arena      the rest of a slot: pinned memory and staging, which guest, worker and GPU map at one address.
//
//   0                    RegionHeader      4 KiB           the broker writes, guests read; `magic` is stored last
//   4 KiB                SlotEntry[64]     4 KiB           the slot directory: broker and guests, by compare-and-swap
//                                                          on `state`
//   first_slot           slot 0            slot_bytes
//   ...                  slot n-1          slot_bytes
//
//   slot + 0             SlotHeader        4 KiB           the worker writes most, the guest writes `opened`
//   slot + 4 KiB         DevicePage        60 KiB          the worker writes before the slot is Ready; the guest reads
//   slot + 64 KiB        channel 0         channel_bytes
//   ...                  channel max_channels-1
//   slot + arena_offset  arena             to the end of the slot
//
// Who writes what is said at each field; nobody believes a field that the other side can write. A guest can write every
// byte here (it is its memory), so a reader on the host reads once, copies, then checks. The structs are plain, so that
// C can read them; C++ reaches them through ring/shared.h alone, which makes each word an atomic one. An ordering that
// a comment names is part of the protocol.
//
// Everything is little-endian and 64-bit: both sides are x86-64 Linux. A change of any offset raises `layout_version`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ring {

inline constexpr std::uint64_t region_magic = 0x3155'5047'5649'0a1aULL;  // "\x1a\nIVGPU1"
inline constexpr std::uint32_t layout_version = 3;

inline constexpr std::size_t page = 4096;
inline constexpr std::size_t line = 64;            // a cache line: words with different writers never share one
inline constexpr std::size_t huge_page = 2 << 20;  // slots start on one, so that a huge-page memfd works, too

inline constexpr std::uint32_t max_slots = 64;
inline constexpr std::uint32_t bell_words = max_slots / 64 + 1;  // a bit for each of the host's peers
inline constexpr std::uint32_t max_channels = 16;
inline constexpr std::uint32_t max_devices = 16;

// A record may carry a launch with 32,764 bytes of parameters (the most that CUDA allows) and the calls' inline bulk
// data. A record is at most half a ring, so that one plus the padding at the wrap always fits in an empty ring.
inline constexpr std::uint32_t request_bytes = 128 << 10;
inline constexpr std::uint32_t max_record = request_bytes / 2;
inline constexpr std::uint32_t reply_bytes = 64 << 10;
inline constexpr std::uint32_t max_completions = 64;

// Nobody polls for longer than this, whatever the other side says.
inline constexpr std::uint32_t longest_spin_us = 10'000;
// The guest polls for so much longer than its worker: a thread that waits for a GPU polls natively, too, all the time.
inline constexpr std::uint32_t guest_spin_factor = 8;

// ---- the region ----------------------------------------------------------------------------------------------------

struct RegionHeader {
  std::uint64_t magic;         // stored last, with release: a reader who sees it sees the rest
  std::uint32_t version;       // layout_version
  std::uint32_t slot_count;    // 1..max_slots
  std::uint64_t generation;    // random at each start of the broker: tells a region from its successor
  std::uint64_t region_bytes;  // a power of two, as an ivshmem BAR must be
  std::uint64_t first_slot;    // offset of slot 0
  std::uint64_t slot_bytes;    // extent of each slot
  char vm[64];                 // the VM's name in the broker's configuration, NUL-terminated
  std::uint32_t no_doorbell;   // 1: the device is an ivshmem-plain; guests ring through `rung`
  // broker: counts up whenever a guest rings it, and every heartbeat_ms while a slot is held
  // (docs/design/011-heartbeat.md)
  alignas(line) std::uint64_t heartbeat;
  alignas(line) std::uint32_t wanted;  // guests: counts up when a slot is wanted and none is Ready
  // guests: bit p % 64 of word p / 64 rings the host's peer p, set with release; the broker takes all bits of a word at
  // once, with acquire.
  alignas(line) std::uint64_t rung[bell_words];
  // broker: its release, such as "0.1.0", NUL-terminated. All 0: one from before it said so.
  alignas(line) char release[32];
};
inline constexpr int heartbeat_ms = 1000;

// What a slot is doing. The word holds an epoch beside the state, so that nobody mistakes a slot for its predecessor;
// it changes by compare-and-swap only. Who may make which step:
//   broker  Empty -> Starting -> Ready         a worker is being started; it has the driver initialised
//   guest   Ready -> Claimed                   a process takes it, then writes `owner` and rings peer 0
//   guest   Claimed | Dead -> Released         the process ends; or a claimer finds the owner dead
//   broker  Claimed -> Dead                    the worker has gone; the guest's calls return errors
//   broker  Released | Starting | Ready -> Empty, epoch + 1    after the worker has gone and the extent was wiped
enum class SlotState : std::uint8_t { Empty, Starting, Ready, Claimed, Released, Dead };

struct SlotWord {
  std::uint32_t epoch = 0;  // 24 bits
  SlotState state = SlotState::Empty;

  static constexpr SlotWord of(std::uint32_t word) { return {word >> 8, static_cast<SlotState>(word & 0xff)}; }
  constexpr std::uint32_t word() const { return epoch << 8 | static_cast<std::uint32_t>(state); }
  constexpr SlotWord with(SlotState s) const { return {epoch, s}; }
  constexpr SlotWord next() const { return {(epoch + 1) & 0xff'ffff, SlotState::Empty}; }
  // Somebody's, whether its worker lives or not.
  constexpr bool held() const { return state == SlotState::Claimed || state == SlotState::Dead; }
};

// Who holds a claimed slot: enough for another process of the same pid namespace to find out that it has died.
struct SlotOwner {
  std::uint64_t boot;        // hash of /proc/sys/kernel/random/boot_id
  std::uint64_t pid_space;   // inode of /proc/self/ns/pid
  std::uint64_t start_time;  // field 22 of /proc/PID/stat
  std::uint32_t pid;
  std::uint32_t peer;  // ivshmem id of the guest: which connection of the broker it came by
};

struct alignas(line) SlotEntry {
  std::uint32_t state;  // SlotWord
  std::uint32_t reserved;
  SlotOwner owner;   // written by the claimer after its compare-and-swap; a hint, never believed
  char program[24];  // so is this: the claimer's name, cut and NUL-terminated; "" where it has none
};

// ivshmem peers. The host appears as several peers, so that a guest can ring one worker and nobody else wakes up:
// the doorbell register takes (peer << 16 | 0). An ivshmem-plain device has no doorbell: `rung` stands in for it.
inline constexpr std::uint32_t peer_broker = 0;
constexpr std::uint32_t peer_of_slot(std::uint32_t slot) { return 1 + slot; }
constexpr std::uint32_t first_guest_peer = 1 + max_slots;

// ---- a slot --------------------------------------------------------------------------------------------------------

inline constexpr std::uint64_t slot_magic = 0x746f'6c73'5649'0a1aULL;

struct SlotHeader {
  std::uint64_t magic;         // worker: stored last, when everything below and the device page are filled
  std::uint32_t version;       // layout_version
  std::uint32_t channels;      // how many of max_channels this worker serves
  std::uint64_t arena_offset;  // from the slot's start
  std::uint64_t arena_bytes;
  std::uint32_t spin_us;  // how long its guest may poll: ring::guest_spin_factor times this
  // worker: the highest ids of calls that it knows (ring/api/known_ids.h). 0: one from before it said so.
  std::uint16_t driver_calls, session_calls;
  // worker: the context's sticky error (a CUresult), 0 while there is none. Every later call of the guest returns it.
  alignas(line) std::uint32_t fault;
  // worker: 1 while text that kernels have printed, or that explains an error, waits to be fetched (take_output); set
  // before the reply that ends a wait, and before `fault`.
  std::uint32_t output;
  // guest: one bit per channel in use. A bit set for the first time, then a ring of the slot's doorbell, makes the
  // worker start that channel's thread.
  alignas(line) std::uint32_t opened;
};

// What never changes while a worker lives, so that a program's start costs no round trip. Filled from the driver.
inline constexpr std::uint32_t max_attributes = 256;
inline constexpr std::uint32_t max_limits = 16;

struct DeviceInfo {
  char name[256];
  std::uint8_t uuid[16];     // cuDeviceGetUuid
  std::uint8_t uuid_v2[16];  // cuDeviceGetUuid_v2
  std::uint64_t total_memory;
  std::int32_t primary_flags;
  std::int32_t least_priority, greatest_priority;  // cuCtxGetStreamPriorityRange
  std::uint32_t reserved;
  std::int32_t attribute[max_attributes];
  std::uint16_t attribute_result[max_attributes];  // CUresult of the query
  std::uint64_t limit[max_limits];                 // cuCtxGetLimit in the fresh primary context
  std::uint16_t limit_result[max_limits];
  char bus_id[32];  // cuDeviceGetPCIBusId
};

struct DevicePage {
  std::uint32_t driver_version;  // cuDriverGetVersion of the driver behind the worker
  std::uint32_t device_count;
  std::uint32_t init_result;  // CUresult of the driver's cuInit: not 0 where the host has no usable GPU
  std::uint32_t simulated;    // 1: the simulated GPU answers
  DeviceInfo device[max_devices];
};

// ---- a channel -----------------------------------------------------------------------------------------------------

struct ChannelControl {
  alignas(line) std::uint32_t tail;  // guest: bytes ever published, free-running
  alignas(line) std::uint32_t head;  // worker: bytes ever taken, free-running
  // worker: 1 while it sleeps (or is about to) for want of records. The guest's ring makes it look again.
  alignas(line) std::uint32_t worker_asleep;
  // worker: records executed, i.e. whose driver call has returned. What another channel waits for (order across
  // threads).
  alignas(line) std::uint64_t executed;
  // worker: the reply mailbox. One reply is outstanding at most, since the thread waits for it.
  alignas(line) std::uint64_t reply_position;  // stored last: which record this answers
  std::uint32_t reply_length;                  // bytes of the reply's payload
  std::int32_t reply_result;                   // CUresult
  // guest: 1 while it sleeps for want of a reply or of an executed record; the worker wakes it by futex where it can,
  // and only when `executed` has come to `guest_awaits`, which the guest writes before.
  alignas(line) std::uint32_t guest_asleep;
  std::uint64_t guest_awaits;
  // worker: errors of posted calls that the context did not keep (a fault is sticky, see SlotHeader::fault).
  alignas(line) std::uint32_t deferred_count;
  std::uint32_t deferred_result;  // CUresult of the latest
  // GPU or worker: what a stream has reached, one word per stream that is being waited for.
  alignas(line) std::uint32_t completion[max_completions];
};

inline constexpr std::size_t control_bytes = page;
inline constexpr std::size_t channel_bytes = control_bytes + request_bytes + reply_bytes;
inline constexpr std::size_t device_page_offset = page;
inline constexpr std::size_t device_page_bytes = 60 << 10;
inline constexpr std::size_t first_channel = 64 << 10;
inline constexpr std::size_t arena_offset = 4 << 20;  // of each slot; a huge page's multiple

constexpr std::size_t channel_offset(std::uint32_t channel) { return first_channel + channel * channel_bytes; }
constexpr std::size_t request_offset(std::uint32_t channel) { return channel_offset(channel) + control_bytes; }
constexpr std::size_t reply_offset(std::uint32_t channel) { return request_offset(channel) + request_bytes; }
constexpr std::size_t slot_entry_offset(std::uint32_t slot) { return page + slot * sizeof(SlotEntry); }

// How a region of a given size is divided. Slots are multiples of huge_page; what is left over at the end is unused.
inline constexpr std::size_t first_slot_offset = huge_page;
inline constexpr std::size_t min_slot_bytes = arena_offset + huge_page;
constexpr std::size_t slot_bytes_for(std::size_t region_bytes, std::uint32_t slots) {
  if (slots == 0 || region_bytes <= first_slot_offset) return 0;
  return (region_bytes - first_slot_offset) / slots / huge_page * huge_page;
}

// ---- the arena's address -------------------------------------------------------------------------------------------

// Guest and worker map a slot's arena at the same address, so that a pinned host pointer means the same in guest,
// worker and GPU. These windows suit plain, ASan, TSan and MSan programs; the guest takes the first that is free in its
// process and says which in its hello.
inline constexpr std::uint32_t window_count = 4;
inline constexpr std::uint64_t window_bytes = 64ULL << 30;
constexpr std::uint64_t window_address(std::uint32_t window) { return 0x7e80'0000'0000ULL + window * window_bytes; }

// ---- every offset, asserted ----------------------------------------------------------------------------------------

static_assert(sizeof(RegionHeader) <= page && offsetof(RegionHeader, version) == 8 && offsetof(RegionHeader, vm) == 48);
static_assert(offsetof(RegionHeader, slot_count) == 12 && offsetof(RegionHeader, generation) == 16);
static_assert(offsetof(RegionHeader, region_bytes) == 24 && offsetof(RegionHeader, first_slot) == 32);
static_assert(offsetof(RegionHeader, slot_bytes) == 40 && offsetof(RegionHeader, heartbeat) == 128);
static_assert(offsetof(RegionHeader, no_doorbell) == 112 && offsetof(RegionHeader, wanted) == 192);
static_assert(offsetof(RegionHeader, rung) == 256 && bell_words * 64 > max_slots);
static_assert(offsetof(RegionHeader, release) == 320 && sizeof(RegionHeader) == 384);
static_assert(sizeof(SlotEntry) == line && offsetof(SlotEntry, owner) == 8 && sizeof(SlotOwner) == 32 &&
              offsetof(SlotEntry, program) == 40);
static_assert(page + max_slots * sizeof(SlotEntry) <= first_slot_offset);
static_assert(sizeof(SlotHeader) <= page && offsetof(SlotHeader, version) == 8 && offsetof(SlotHeader, channels) == 12);
static_assert(offsetof(SlotHeader, arena_offset) == 16 && offsetof(SlotHeader, arena_bytes) == 24);
static_assert(offsetof(SlotHeader, spin_us) == 32 && offsetof(SlotHeader, driver_calls) == 36);
static_assert(offsetof(SlotHeader, session_calls) == 38);
static_assert(offsetof(SlotHeader, fault) == 64 && offsetof(SlotHeader, output) == 68);
static_assert(offsetof(SlotHeader, opened) == 128);
static_assert(offsetof(DeviceInfo, uuid) == 256 && offsetof(DeviceInfo, total_memory) == 288);
static_assert(offsetof(DeviceInfo, attribute) == 312 && offsetof(DeviceInfo, attribute_result) == 1336);
static_assert(offsetof(DeviceInfo, limit) == 1848 && offsetof(DeviceInfo, bus_id) == 2008 &&
              sizeof(DeviceInfo) == 2040);
static_assert(sizeof(DevicePage) <= device_page_bytes && offsetof(DevicePage, device) == 16);
static_assert(sizeof(ChannelControl) <= control_bytes && offsetof(ChannelControl, head) == 64);
static_assert(offsetof(ChannelControl, worker_asleep) == 128 && offsetof(ChannelControl, executed) == 192);
static_assert(offsetof(ChannelControl, reply_position) == 256 && offsetof(ChannelControl, reply_length) == 264);
static_assert(offsetof(ChannelControl, reply_result) == 268 && offsetof(ChannelControl, guest_asleep) == 320);
static_assert(offsetof(ChannelControl, guest_awaits) == 328);
static_assert(offsetof(ChannelControl, deferred_count) == 384 && offsetof(ChannelControl, deferred_result) == 388);
static_assert(offsetof(ChannelControl, completion) == 448);
static_assert(channel_offset(max_channels) <= arena_offset && channel_bytes % page == 0);
static_assert((request_bytes & (request_bytes - 1)) == 0, "ring positions run free and are masked");

}  // namespace ring
