// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0
// The interface of the guest's kernel module, /dev/ivgpuN. This file is plain C11, for the module and for programs.
// ring/layout/layout_c.h describes the pages that the module maps.
//
// An open descriptor can claim one slot. The descriptor can access only that slot, in whichever process it is open.
//   mmap      The offset is the region's: its header area (the first IVGPU_HEADER_AREA_BYTES), read-only, and the
//             descriptor's own slot. Shared only. A module of interface 1 maps only IVGPU_HEADER_BYTES of the header
//             area, and refuses more with EINVAL.
//   read      Eight bytes: the number of slot interrupts since the last read. Waits for one without O_NONBLOCK.
//   poll      POLLIN: read would not wait, even because the descriptor has no slot. POLLHUP: the device has gone.
//   close     The last close gives the slot back. The slot is also given back when the process that claimed it ends, or
//             calls exec so that the descriptor is closed, even if other processes have the descriptor open.
//
// A slot ends when it is given back, or when the device or the claiming process has gone. From then on, no mapping
// shows the slot's memory. The slot's first IVGPU_QUIET_BYTES, and a removed device's header, then read as zeros and
// discard writes. The library therefore checks the slot's magic after each read. The rest of the slot is memory of
// programs, and raises SIGBUS. If the module has no pages of the region (flags), the whole slot raises SIGBUS.
//
// Errors of all calls: ENODEV, the device has gone, or the descriptor has no slot and the call needs one. EBADF, the
// call changes something and the descriptor is read-only. EINVAL, an argument is out of range, or reserved and not 0.
// ENOTTY, an older module.
// Any thread may call.
//
// ```c
// #include <fcntl.h>
// #include <sys/ioctl.h>
// int with_slot(struct IvgpuModuleClaim* claim) {
//   const int fd = open("/dev/ivgpu0", O_RDWR | O_CLOEXEC);
//   claim->timeout_ms = 1000;
//   return fd >= 0 && ioctl(fd, IVGPU_IOC_CLAIM, claim) == 0 ? fd : -1;  // the open descriptor holds claim->slot
// }
// ```
#pragma once

#include <linux/ioctl.h>

#include "ring/layout/layout_c.h"

// The version of this file; later modules only add to it. Version 2 adds the whole header area, and IVGPU_RING_GPUS.
#define IVGPU_MODULE_INTERFACE 2
#define IVGPU_NO_SLOT 0xffffffffU

// The bits of IvgpuModuleInfo::flags.
#define IVGPU_MODULE_WAKES 1U  // the module has all interrupts that its slots need: WAIT, read and poll notice them
// The region is mapped write-back, by entries of 2 MiB; otherwise as the firmware chose.
#define IVGPU_MODULE_WRITE_BACK 2U

struct IvgpuModuleInfo {
  uint32_t interface;  // IVGPU_MODULE_INTERFACE
  uint32_t layout;     // IVGPU_LAYOUT_VERSION of the region
  uint64_t region_bytes;
  uint64_t first_slot;  // the module has checked that all slots lie within the region
  uint64_t slot_bytes;
  uint32_t slot_count;
  uint32_t peer;            // this VM's ivshmem id
  uint32_t device_vectors;  // the device's interrupts; vector k % device_vectors wakes slot k
  uint32_t vectors;         // the number of these interrupts that the module uses: as many as the slots need, or none
  uint32_t flags;
  uint32_t slot;  // the descriptor's slot, or IVGPU_NO_SLOT
  uint32_t word;  // the slot's state word after the claim
  uint32_t reserved;
  char release[32];  // the module's release, NUL-terminated
};

#define IVGPU_QUIET_BYTES (IVGPU_ARENA_OFFSET + (8 << 20))  // rings, mailboxes, and the library's staging memory

// Claims a Ready slot, and waits up to `timeout_ms` for one. EBUSY: the descriptor already has a slot. ETIMEDOUT: no
// slot became Ready. EINTR: a signal arrived.
struct IvgpuModuleClaim {
  uint32_t timeout_ms;
  uint32_t slot;  // returned: the slot
  uint32_t word;  // returned: the slot's state word, Claimed
  uint32_t reserved;
  // The program's name; "": use the name that the kernel knows.
  char name[sizeof(((struct IvgpuSlotEntry*)0)->program)];
};

// Sleeps while the 32-bit word at `offset` of the own slot equals `expected`, like FUTEX_WAIT. The kernel checks the
// word before it sleeps and at each interrupt of the slot. 0: the word has changed. EAGAIN: the word was different at
// the start. ETIMEDOUT: the time limit was reached. EINTR: a signal arrived; the call is not restarted, since its time
// limit is relative. ENOSPC: IVGPU_MAX_SLEEPERS threads already sleep on this slot.
struct IvgpuModuleWait {
  uint64_t offset;      // a multiple of 4, below the arena (IVGPU_ARENA_OFFSET)
  uint64_t timeout_ns;  // IVGPU_FOREVER: no limit
  uint32_t expected;
  uint32_t reserved;
};
#define IVGPU_FOREVER 0xffffffffffffffffULL
// A thread for each channel, the callback thread, and as many again; each interrupt checks all sleepers.
#define IVGPU_MAX_SLEEPERS 256

// The arguments of IVGPU_IOC_RING.
#define IVGPU_RING_BROKER 0
#define IVGPU_RING_WORKER 1  // the own slot's worker
// Increments RegionHeader's gpu_questions, which a program may not write, and rings the broker. Needs no slot. EINVAL:
// the module has interface 1.
#define IVGPU_RING_GPUS 2

#define IVGPU_IOC_INFO _IOR(0xbd, 0, struct IvgpuModuleInfo)
#define IVGPU_IOC_CLAIM _IOWR(0xbd, 1, struct IvgpuModuleClaim)
#define IVGPU_IOC_RELEASE _IO(0xbd, 2)
#define IVGPU_IOC_RING _IO(0xbd, 3)  // the argument is the value itself: IVGPU_RING_...
// The argument is the value itself: an eventfd to signal at each interrupt, or -1.
#define IVGPU_IOC_EVENTFD _IO(0xbd, 4)
#define IVGPU_IOC_WAIT _IOW(0xbd, 5, struct IvgpuModuleWait)

IVGPU_SIZE(IvgpuModuleInfo, 96);
IVGPU_SIZE(IvgpuModuleClaim, 40);
IVGPU_SIZE(IvgpuModuleWait, 24);
