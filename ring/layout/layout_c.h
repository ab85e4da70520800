// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0
// The shared region on one page: the layout of the memory that a VM's guest, its workers and the GPU all map. This file
// is plain C11, so that a kernel module can include it. C++ code includes ring/layout/layout.h, which gives everything
// a C++ name.
//
//   region     one for each VM: BAR2 of its ivshmem device, and one sealed memfd on the host.
//   slot       one for each guest process (session): an extent of whole pages; the slot's worker maps no other slot.
//   channel    one for each guest thread: a request ring, a reply mailbox, an executed counter, completion words.
//   lane       one of the slot's callback slots, by which the worker calls a function of the program in the guest.
//   arena      the rest of a slot: pinned memory and staging, which guest, worker and GPU map at one address.
//   front      the header area, outside all slots: the region's header, the directory, and vm_page_c.h's structs.
//   common     an extent that all of the VM's processes and workers may share. No region has one yet.
//
//   0                    RegionHeader      4 KiB           the broker writes, guests read; `magic` is stored last
//   4 KiB                SlotEntry[64]     4 KiB           the slot directory: broker and guests swap `state`
//   8 KiB                VmPage            4 KiB           the broker writes, guests read: the VM as a whole
//   12 KiB               VmGpu[16]         16 KiB          the broker writes, guests read: each GPU of the VM
//   first_slot           slot 0            slot_bytes
//   ...                  slot n-1          slot_bytes
//
//   slot + 0             SlotHeader        4 KiB           the worker writes most, the guest writes `opened`
//   slot + 4 KiB         DevicePage        56 KiB          the worker writes before the slot is Ready; the guest reads
//   slot + 60 KiB        CallbackSlot[8]    4 KiB           worker and guest, a cache line for each side
//   slot + 64 KiB        channel 0         channel_bytes
//   ...                  channel max_channels-1
//   slot + arena_offset  arena             to the end of the slot
//
// Each field names its writer; no reader trusts a field that the other side can write. A guest can write every byte of
// the region, so a reader on the host reads a word once, copies it, then checks the copy. The structs are plain; C++
// code accesses them only through ring/shared/shared.h, which makes each access to a word atomic. The memory orderings
// in the comments are part of the protocol.
//
// Everything is little-endian and 64-bit: both sides are x86-64 Linux. A change of any offset raises
// IVGPU_LAYOUT_VERSION. Offsets and sizes are bytes.
//
// ```c
// int is_usable(const struct IvgpuRegionHeader* copy) {
//   return copy->magic == IVGPU_REGION_MAGIC && copy->version == IVGPU_LAYOUT_VERSION &&
//          copy->slot_count >= 1 && copy->slot_count <= IVGPU_MAX_SLOTS;
// }
// ```
#pragma once

#ifdef __KERNEL__
#include <linux/stddef.h>
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#ifdef __cplusplus
#define IVGPU_ALIGNAS(n) alignas(n)
#define IVGPU_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define IVGPU_ALIGNAS(n) _Alignas(n)
#define IVGPU_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#define IVGPU_REGION_MAGIC 0x3155504756490a1aULL  // "\x1a\nIVGPU1"
#define IVGPU_LAYOUT_VERSION 4

#define IVGPU_PAGE 4096
#define IVGPU_LINE 64            // a cache line: words with different writers never share a line
#define IVGPU_HUGE_PAGE 2097152  // slots start at a multiple of this size, so that a huge-page memfd works

#define IVGPU_MAX_SLOTS 64
#define IVGPU_DOORBELL_WORDS (IVGPU_MAX_SLOTS / 64 + 1)  // one bit for each of the host's peers
#define IVGPU_MAX_CHANNELS 64                            // one bit for each channel in `opened`
#define IVGPU_MAX_CALLBACK_SLOTS 8
#define IVGPU_MAX_DEVICES 16

// A record may contain a launch with 32,764 bytes of parameters (CUDA's limit), or the inline bulk data of other calls.
// A record is at most half a ring, so that one record and the padding at the ring's end always fit into an empty ring.
#define IVGPU_REQUEST_BYTES (128 << 10)
#define IVGPU_MAX_RECORD (IVGPU_REQUEST_BYTES / 2)
#define IVGPU_REPLY_BYTES (64 << 10)
#define IVGPU_MAX_COMPLETIONS 64

#define IVGPU_AT(type, member, offset) \
  IVGPU_STATIC_ASSERT(offsetof(struct type, member) == (offset), #type "." #member " lies elsewhere")
#define IVGPU_SIZE(type, bytes) IVGPU_STATIC_ASSERT(sizeof(struct type) == (bytes), #type " has another size")

// ---- the region ----------------------------------------------------------------------------------------------------

struct IvgpuRegionHeader {
  uint64_t magic;         // stored last, with release: a reader that sees the magic number also sees the other members
  uint32_t version;       // IVGPU_LAYOUT_VERSION
  uint32_t slot_count;    // 1..IVGPU_MAX_SLOTS
  uint64_t generation;    // random at each start of the broker: distinguishes a region from its successor
  uint64_t region_bytes;  // a power of two, as an ivshmem BAR must be
  uint64_t first_slot;    // offset of slot 0
  uint64_t slot_bytes;    // the size of each slot
  char vm[64];            // the VM's name in the broker's configuration, NUL-terminated
  uint32_t no_doorbell;   // 1: ivshmem-plain or persistent memory; guests ring through `doorbell_bits`
  // broker: the number of the device's interrupts. The worker of slot k raises interrupt k % guest_vectors for a guest
  // that sleeps by IVGPU_ASLEEP_BY_DOORBELL. 0: no worker raises any.
  uint32_t guest_vectors;
  // broker: incremented whenever a guest rings, and every heartbeat_ms while a process owns a slot
  // (docs/design/011-heartbeat.md)
  IVGPU_ALIGNAS(IVGPU_LINE) uint64_t heartbeat;
  IVGPU_ALIGNAS(IVGPU_LINE) uint32_t wanted;  // guests: incremented when a process wants a slot and no slot is Ready
  // guests: bit p % 64 of word p / 64 rings host peer p; set with release. The broker takes all bits of a word at once,
  // with acquire.
  IVGPU_ALIGNAS(IVGPU_LINE) uint64_t doorbell_bits[IVGPU_DOORBELL_WORDS];
  // broker: its release, for example "0.1.0", NUL-terminated. All 0: the broker is older than this member.
  IVGPU_ALIGNAS(IVGPU_LINE) char release[32];
  uint64_t common_offset;  // broker: the start of the common extent, from the region's start
  uint64_t common_bytes;   // broker: size of the common extent; 0: none
  // broker: its vsock port, where a program without a doorbell gets a doorbell channel
  // (ring/layout/doorbell_channel.h). 0: no port, or the broker is older than this member.
  uint32_t doorbell_port;
  // guests: incremented with each question about the VM's GPUs, before the guest rings peer 0 (ring/layout/vm_page_c.h)
  IVGPU_ALIGNAS(IVGPU_LINE) uint32_t gpu_questions;
};

// The state of a slot. The word also contains an epoch, so that no process mistakes a slot for its predecessor. The
// word changes only by compare-and-swap. Each step has one party that may make it:
//   broker  Empty -> Starting -> Ready         the broker starts a worker; the worker has initialised the driver
//   guest   Ready -> Claimed                   a process takes the slot, then writes `owner` and rings peer 0
//   guest   Claimed | Dead -> Released         the process ends, or a claiming process finds the owner dead
//   broker  Claimed -> Dead                    the worker has ended; the guest's calls return errors
//   broker  Released | Starting | Ready -> Empty, epoch + 1    the worker has ended, and the slot was scrubbed The low
//           bits are the state, the bits above them the epoch.
#define IVGPU_SLOT_STATE_BITS 8
#define IVGPU_SLOT_EPOCH_BITS 24
enum IvgpuSlotState {
  IVGPU_SLOT_EMPTY,
  IVGPU_SLOT_STARTING,
  IVGPU_SLOT_READY,
  IVGPU_SLOT_CLAIMED,
  IVGPU_SLOT_RELEASED,
  IVGPU_SLOT_DEAD
};

// The owner of a claimed slot. By it, another process of the same pid namespace can find out that the owner has died.
struct IvgpuSlotOwner {
  uint64_t boot;        // hash of /proc/sys/kernel/random/boot_id
  uint64_t pid_space;   // inode of /proc/self/ns/pid
  uint64_t start_time;  // field 22 of /proc/PID/stat
  uint32_t pid;
  uint32_t peer;  // ivshmem id of the guest, that is, of the guest's connection to the broker
};

struct IvgpuSlotEntry {
  IVGPU_ALIGNAS(IVGPU_LINE) uint32_t state;  // epoch and IvgpuSlotState
  // guest kernel: 1 while the guest's kernel or a device still uses pages of the slot. The broker must not scrub or
  // reuse the slot then (docs/design/033-guest-module.md). The module sets the word before Released, and clears it with
  // a ring of peer 0. The broker reads the word only in a Released slot. The broker clears it before Empty, and after
  // the guest's connection has ended.
  uint32_t pinned;
  struct IvgpuSlotOwner owner;  // the claiming process writes this after its compare-and-swap; an untrusted hint
  char program[24];             // also written by the claiming process: its name, cut and NUL-terminated; "": no name
};

// ---- a slot --------------------------------------------------------------------------------------------------------

#define IVGPU_SLOT_MAGIC 0x746f6c7356490a1aULL  // "\x1a\nIVslot"

struct IvgpuSlotHeader {
  uint64_t magic;         // worker: stored last, when all members below and the device page are filled
  uint32_t version;       // IVGPU_LAYOUT_VERSION
  uint32_t channels;      // the number of channels that this worker serves
  uint64_t arena_offset;  // from the slot's start
  uint64_t arena_bytes;
  uint32_t spin_us;  // the guest may poll ring::guest_spin_factor times this time, or twice that
  // worker: the highest ids of the calls that it knows (ring/api/known_ids.h). 0: an older worker does not set them.
  uint16_t driver_calls, session_calls;
  // worker: the context's sticky error (a CUresult); 0: none. Every later call of the guest returns this error.
  IVGPU_ALIGNAS(IVGPU_LINE) uint32_t fault;
  // worker: 1 while a text waits for take_output: output of kernels, or the explanation of an error. Set before the
  // reply that ends a wait, and before `fault`.
  uint32_t output;
  // guest: one bit for each channel in use. A new bit and a ring of the slot's doorbell make the worker start that
  // channel's thread.
  IVGPU_ALIGNAS(IVGPU_LINE) uint64_t opened;
  // guest: an IvgpuAsleep while the callback thread sleeps (or is about to sleep) because no callback slot is filled.
  uint32_t callbacks_asleep;
  // worker: incremented whenever its guest rings, and every few milliseconds while it has no broker
  // (docs/design/041-workers-answer.md). 0: the worker is older than this member.
  IVGPU_ALIGNAS(IVGPU_LINE) uint64_t heartbeat;
};

// Properties of a device, from the driver. They are constant while a worker lives, so a start needs no round trip.
#define IVGPU_MAX_ATTRIBUTES 256
#define IVGPU_MAX_LIMITS 16

struct IvgpuDeviceInfo {
  char name[256];
  uint8_t uuid[16];     // from cuDeviceGetUuid
  uint8_t uuid_v2[16];  // from cuDeviceGetUuid_v2
  uint64_t total_memory;
  int32_t primary_flags;
  int32_t least_priority, greatest_priority;  // from cuCtxGetStreamPriorityRange
  uint32_t reserved;
  int32_t attribute[IVGPU_MAX_ATTRIBUTES];
  uint16_t attribute_result[IVGPU_MAX_ATTRIBUTES];  // the CUresult of each attribute's query
  uint64_t limit[IVGPU_MAX_LIMITS];                 // from cuCtxGetLimit in the fresh primary context
  uint16_t limit_result[IVGPU_MAX_LIMITS];
  char bus_id[32];  // from cuDeviceGetPCIBusId
};

struct IvgpuDevicePage {
  uint32_t driver_version;  // from the worker's cuDriverGetVersion
  uint32_t device_count;
  uint32_t init_result;  // the CUresult of the driver's cuInit: not 0 if the host has no usable GPU
  uint32_t simulated;    // 1: the driver is the simulated GPU
  struct IvgpuDeviceInfo device[IVGPU_MAX_DEVICES];
};

// A worker's call of one function of the program (ring/queue/callback_slot.h).
//   A callback slot (lane) is free while `done` equals `sequence`; at first both are 0. The worker fills a free lane:
//   token and kind, then `sequence`, one more than before, with release. The guest's callback thread finds a `sequence`
//   that differs from `done` (acquire), makes the call, and writes `result`, then that number to `done`, with release.
// Only the guest can interpret the token; it looks the token up in its table of tokens. The worker accepts in `done`
// only the number for which it waits.
enum IvgpuCallbackKind {
  IVGPU_CALLBACK_HOST_FUNCTION = 1,    // call the program's function (CUhostFn)
  IVGPU_CALLBACK_STREAM_CALLBACK = 2,  // call the program's function with `status` (CUstreamCallback)
  IVGPU_CALLBACK_FORGET = 3,           // end the token without a call, because the driver will not make the call
};

struct IvgpuCallbackSlot {
  IVGPU_ALIGNAS(IVGPU_LINE) uint64_t token;  // worker: the token, by which the guest identifies the function
  uint32_t kind;                             // worker: an IvgpuCallbackKind
  int32_t status;                            // worker: the CUresult for a stream callback
  uint64_t sequence;                         // worker, last: the number of this use of the callback slot
  uint32_t worker_asleep;                   // worker: 1 while it sleeps (or is about to sleep) until the answer arrives
  IVGPU_ALIGNAS(IVGPU_LINE) uint64_t done;  // guest, last: the number of the use that it has answered
  int32_t result;                           // guest: a CUresult
};

// How a guest sleeps, and therefore how its worker wakes it: the worker first sets the word to 0. A guest that neither
// way can wake uses timed sleeps and announces nothing.
enum IvgpuAsleep {
  IVGPU_ASLEEP_BY_FUTEX = 1,     // on this machine's kernel: FUTEX_WAKE on the word
  IVGPU_ASLEEP_BY_DOORBELL = 2,  // in a VM with the kernel module: an interrupt (RegionHeader's guest_vectors)
};

// ---- a channel -----------------------------------------------------------------------------------------------------

struct IvgpuChannelControl {
  IVGPU_ALIGNAS(IVGPU_LINE) uint32_t tail;  // guest: bytes ever published, free-running
  IVGPU_ALIGNAS(IVGPU_LINE) uint32_t head;  // worker: bytes ever consumed, free-running
  // worker: 1 while it sleeps (or is about to) because the ring is empty. A doorbell makes the worker look again.
  IVGPU_ALIGNAS(IVGPU_LINE) uint32_t worker_asleep;
  // worker: the number of records whose driver call has returned. Threads of other channels may wait for this number.
  IVGPU_ALIGNAS(IVGPU_LINE) uint64_t executed;
  // worker: the reply mailbox. At most one reply is pending, since the guest's thread waits for the reply.
  IVGPU_ALIGNAS(IVGPU_LINE) uint64_t reply_position;  // stored last: the position of the answered record
  uint32_t reply_length;                              // number of bytes of the reply's payload
  int32_t reply_result;                               // a CUresult
  // guest: an IvgpuAsleep while the thread waits for a reply or for an executed record. The worker wakes the thread
  // only when `executed` has reached `guest_awaits`, which the guest writes first.
  IVGPU_ALIGNAS(IVGPU_LINE) uint32_t guest_asleep;
  uint64_t guest_awaits;
  // worker: the number of errors of posted calls that are not sticky (sticky errors are in the slot's `fault`).
  IVGPU_ALIGNAS(IVGPU_LINE) uint32_t deferred_count;
  uint32_t deferred_result;  // the CUresult of the latest error
  uint32_t unused;           // 0; workers before 0.9 used this word to report that they waited for a GPU
  // GPU or worker: the progress of streams, with one word for each stream that a thread waits for.
  IVGPU_ALIGNAS(IVGPU_LINE) uint32_t completion[IVGPU_MAX_COMPLETIONS];
};

// ---- offsets -------------------------------------------------------------------------------------------------------

#define IVGPU_DIRECTORY_OFFSET IVGPU_PAGE
#define IVGPU_VM_PAGE_OFFSET (2 * IVGPU_PAGE)
#define IVGPU_HEADER_BYTES (IVGPU_VM_PAGE_OFFSET + IVGPU_PAGE)  // the size of header, directory and VM page
#define IVGPU_VM_GPUS_OFFSET IVGPU_HEADER_BYTES
#define IVGPU_VM_GPUS_BYTES (IVGPU_MAX_DEVICES << 10)
#define IVGPU_HEADER_AREA_BYTES (IVGPU_VM_GPUS_OFFSET + IVGPU_VM_GPUS_BYTES)  // the header area
#define IVGPU_FIRST_SLOT_OFFSET IVGPU_HUGE_PAGE

// Offsets from the slot's start. The arena's offset is a multiple of a huge page.
#define IVGPU_DEVICE_PAGE_OFFSET IVGPU_PAGE
#define IVGPU_DEVICE_PAGE_BYTES (56 << 10)
#define IVGPU_CALLBACK_SLOTS_OFFSET (60 << 10)
#define IVGPU_FIRST_CHANNEL (64 << 10)
#define IVGPU_ARENA_OFFSET (16 << 20)

// The parts of a channel: its words, its ring, its mailbox.
#define IVGPU_CONTROL_BYTES IVGPU_PAGE
#define IVGPU_CHANNEL_BYTES (IVGPU_CONTROL_BYTES + IVGPU_REQUEST_BYTES + IVGPU_REPLY_BYTES)

// Guest and worker map a slot's arena at the same address, so that a pinned host pointer has the same meaning in guest,
// worker and GPU. These windows are free in plain, ASan, TSan and MSan programs. The guest takes the first window that
// is free in its process, and reports the window in hello.
#define IVGPU_WINDOW_COUNT 4
#define IVGPU_WINDOW_BYTES (64ULL << 30)
#define IVGPU_FIRST_WINDOW 0x7e8000000000ULL

// ---- checks of every offset ----------------------------------------------------------------------------------------

IVGPU_AT(IvgpuRegionHeader, magic, 0);
IVGPU_AT(IvgpuRegionHeader, version, 8);
IVGPU_AT(IvgpuRegionHeader, slot_count, 12);
IVGPU_AT(IvgpuRegionHeader, generation, 16);
IVGPU_AT(IvgpuRegionHeader, region_bytes, 24);
IVGPU_AT(IvgpuRegionHeader, first_slot, 32);
IVGPU_AT(IvgpuRegionHeader, slot_bytes, 40);
IVGPU_AT(IvgpuRegionHeader, vm, 48);
IVGPU_AT(IvgpuRegionHeader, no_doorbell, 112);
IVGPU_AT(IvgpuRegionHeader, guest_vectors, 116);
IVGPU_AT(IvgpuRegionHeader, heartbeat, 128);
IVGPU_AT(IvgpuRegionHeader, wanted, 192);
IVGPU_AT(IvgpuRegionHeader, doorbell_bits, 256);
IVGPU_AT(IvgpuRegionHeader, release, 320);
IVGPU_AT(IvgpuRegionHeader, common_offset, 352);
IVGPU_AT(IvgpuRegionHeader, common_bytes, 360);
IVGPU_AT(IvgpuRegionHeader, doorbell_port, 368);
IVGPU_AT(IvgpuRegionHeader, gpu_questions, 384);
IVGPU_SIZE(IvgpuRegionHeader, 448);
IVGPU_AT(IvgpuSlotOwner, boot, 0);
IVGPU_AT(IvgpuSlotOwner, pid_space, 8);
IVGPU_AT(IvgpuSlotOwner, start_time, 16);
IVGPU_AT(IvgpuSlotOwner, pid, 24);
IVGPU_AT(IvgpuSlotOwner, peer, 28);
IVGPU_SIZE(IvgpuSlotOwner, 32);
IVGPU_AT(IvgpuSlotEntry, state, 0);
IVGPU_AT(IvgpuSlotEntry, pinned, 4);
IVGPU_AT(IvgpuSlotEntry, owner, 8);
IVGPU_AT(IvgpuSlotEntry, program, 40);
IVGPU_SIZE(IvgpuSlotEntry, IVGPU_LINE);
IVGPU_AT(IvgpuSlotHeader, magic, 0);
IVGPU_AT(IvgpuSlotHeader, version, 8);
IVGPU_AT(IvgpuSlotHeader, channels, 12);
IVGPU_AT(IvgpuSlotHeader, arena_offset, 16);
IVGPU_AT(IvgpuSlotHeader, arena_bytes, 24);
IVGPU_AT(IvgpuSlotHeader, spin_us, 32);
IVGPU_AT(IvgpuSlotHeader, driver_calls, 36);
IVGPU_AT(IvgpuSlotHeader, session_calls, 38);
IVGPU_AT(IvgpuSlotHeader, fault, 64);
IVGPU_AT(IvgpuSlotHeader, output, 68);
IVGPU_AT(IvgpuSlotHeader, opened, 128);
IVGPU_AT(IvgpuSlotHeader, callbacks_asleep, 136);
IVGPU_AT(IvgpuSlotHeader, heartbeat, 192);
IVGPU_SIZE(IvgpuSlotHeader, 256);
IVGPU_AT(IvgpuDeviceInfo, name, 0);
IVGPU_AT(IvgpuDeviceInfo, uuid, 256);
IVGPU_AT(IvgpuDeviceInfo, uuid_v2, 272);
IVGPU_AT(IvgpuDeviceInfo, total_memory, 288);
IVGPU_AT(IvgpuDeviceInfo, primary_flags, 296);
IVGPU_AT(IvgpuDeviceInfo, least_priority, 300);
IVGPU_AT(IvgpuDeviceInfo, greatest_priority, 304);
IVGPU_AT(IvgpuDeviceInfo, reserved, 308);
IVGPU_AT(IvgpuDeviceInfo, attribute, 312);
IVGPU_AT(IvgpuDeviceInfo, attribute_result, 1336);
IVGPU_AT(IvgpuDeviceInfo, limit, 1848);
IVGPU_AT(IvgpuDeviceInfo, limit_result, 1976);
IVGPU_AT(IvgpuDeviceInfo, bus_id, 2008);
IVGPU_SIZE(IvgpuDeviceInfo, 2040);
IVGPU_AT(IvgpuDevicePage, driver_version, 0);
IVGPU_AT(IvgpuDevicePage, device_count, 4);
IVGPU_AT(IvgpuDevicePage, init_result, 8);
IVGPU_AT(IvgpuDevicePage, simulated, 12);
IVGPU_AT(IvgpuDevicePage, device, 16);
IVGPU_AT(IvgpuCallbackSlot, token, 0);
IVGPU_AT(IvgpuCallbackSlot, kind, 8);
IVGPU_AT(IvgpuCallbackSlot, status, 12);
IVGPU_AT(IvgpuCallbackSlot, sequence, 16);
IVGPU_AT(IvgpuCallbackSlot, worker_asleep, 24);
IVGPU_AT(IvgpuCallbackSlot, done, 64);
IVGPU_AT(IvgpuCallbackSlot, result, 72);
IVGPU_SIZE(IvgpuCallbackSlot, 2 * IVGPU_LINE);
IVGPU_AT(IvgpuChannelControl, tail, 0);
IVGPU_AT(IvgpuChannelControl, head, 64);
IVGPU_AT(IvgpuChannelControl, worker_asleep, 128);
IVGPU_AT(IvgpuChannelControl, executed, 192);
IVGPU_AT(IvgpuChannelControl, reply_position, 256);
IVGPU_AT(IvgpuChannelControl, reply_length, 264);
IVGPU_AT(IvgpuChannelControl, reply_result, 268);
IVGPU_AT(IvgpuChannelControl, guest_asleep, 320);
IVGPU_AT(IvgpuChannelControl, guest_awaits, 328);
IVGPU_AT(IvgpuChannelControl, deferred_count, 384);
IVGPU_AT(IvgpuChannelControl, deferred_result, 388);
IVGPU_AT(IvgpuChannelControl, unused, 392);
IVGPU_AT(IvgpuChannelControl, completion, 448);
IVGPU_SIZE(IvgpuChannelControl, 704);

IVGPU_STATIC_ASSERT(sizeof(struct IvgpuRegionHeader) <= IVGPU_DIRECTORY_OFFSET, "the header is in the directory's way");
IVGPU_STATIC_ASSERT(IVGPU_DIRECTORY_OFFSET + IVGPU_MAX_SLOTS * sizeof(struct IvgpuSlotEntry) <= IVGPU_VM_PAGE_OFFSET,
                    "the directory is in the VM page's way");
IVGPU_STATIC_ASSERT(IVGPU_HEADER_AREA_BYTES <= IVGPU_FIRST_SLOT_OFFSET, "the VM's GPUs are in the slots' way");
IVGPU_STATIC_ASSERT(IVGPU_DOORBELL_WORDS * 64 > IVGPU_MAX_SLOTS, "the broker has a bit, too");
IVGPU_STATIC_ASSERT(sizeof(struct IvgpuSlotHeader) <= IVGPU_DEVICE_PAGE_OFFSET, "the header is in the page's way");
IVGPU_STATIC_ASSERT(sizeof(struct IvgpuDevicePage) <= IVGPU_DEVICE_PAGE_BYTES, "the device page is too long");
IVGPU_STATIC_ASSERT(IVGPU_DEVICE_PAGE_OFFSET + IVGPU_DEVICE_PAGE_BYTES <= IVGPU_CALLBACK_SLOTS_OFFSET,
                    "the device page is in the lanes' way");
IVGPU_STATIC_ASSERT(IVGPU_MAX_CALLBACK_SLOTS * sizeof(struct IvgpuCallbackSlot) <= IVGPU_PAGE,
                    "the lanes have one page");
IVGPU_STATIC_ASSERT(IVGPU_CALLBACK_SLOTS_OFFSET + IVGPU_PAGE <= IVGPU_FIRST_CHANNEL,
                    "the lanes are in the channels' way");
IVGPU_STATIC_ASSERT(sizeof(struct IvgpuChannelControl) <= IVGPU_CONTROL_BYTES, "a channel's words have one page");
IVGPU_STATIC_ASSERT(IVGPU_CHANNEL_BYTES % IVGPU_PAGE == 0, "channels are of pages");
IVGPU_STATIC_ASSERT(IVGPU_FIRST_CHANNEL + IVGPU_MAX_CHANNELS * IVGPU_CHANNEL_BYTES <= IVGPU_ARENA_OFFSET,
                    "the channels are in the arena's way");
IVGPU_STATIC_ASSERT(IVGPU_ARENA_OFFSET % IVGPU_HUGE_PAGE == 0, "the arena starts on a huge page");
IVGPU_STATIC_ASSERT((IVGPU_REQUEST_BYTES & (IVGPU_REQUEST_BYTES - 1)) == 0, "ring positions run free and are masked");
IVGPU_STATIC_ASSERT(IVGPU_MAX_CHANNELS <= 64, "`opened` has a bit for each channel");
