// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0
// The interface of the guest's kernel module, /dev/ivgpuN. Plain C11, for the module and for programs;
// ring/layout/layout_c.h describes the pages that are mapped through it.
//
// An open descriptor can claim one slot. It reaches only that slot, in whichever process it is.
//   mmap      The offset is the region's: its header area (the first IVGPU_HEADER_AREA_BYTES), read-only, and the
//             descriptor's own slot. Shared only. A module of interface 1 maps only IVGPU_HEADER_BYTES of the header
//             area, and refuses more with EINVAL.
//   read      Eight bytes: the number of slot interrupts since the last read. Waits for one without O_NONBLOCK.
//   poll      POLLIN: read would not wait, even because the descriptor has no slot. POLLHUP: the device has gone.
//   close     The last close gives the slot back. So does the end of the process that claimed it, or an exec there that
//             closes the descriptor, even if other processes have it open.
//
// A slot ends when it is given back, or when the device or its claimer has gone. Its mappings then show none of its
// memory, for good. The slot's first IVGPU_QUIET_BYTES, and a removed device's header, then read as zeros and lose
// writes. The library therefore checks the slot's magic after each read. The rest is memory of programs, and raises
// SIGBUS. If the module has no pages of the region (flags), all of the slot raises SIGBUS.
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

// The version of this file; modules only ever add to it. 2: the whole header area, and IVGPU_RING_GPUS.
#define IVGPU_MODULE_INTERFACE 2
#define IVGPU_NO_SLOT 0xffffffffU

// IvgpuModuleInfo::flags
#define IVGPU_MODULE_WAKES 1U       // the module has all interrupts that its slots need: WAIT, read and poll see them
#define IVGPU_MODULE_WRITE_BACK 2U  // the region is mapped write-back, by entries of 2 MiB; else as the firmware chose

struct IvgpuModuleInfo {
  uint32_t interface;  // IVGPU_MODULE_INTERFACE
  uint32_t layout;     // IVGPU_LAYOUT_VERSION of the region
  uint64_t region_bytes;
  uint64_t first_slot;  // checked: all slots lie within the region
  uint64_t slot_bytes;
  uint32_t slot_count;
  uint32_t peer;            // this VM's ivshmem id
  uint32_t device_vectors;  // the device's interrupts; vector k % device_vectors wakes slot k
  uint32_t vectors;         // the module's share of them: all that slots use, or none
  uint32_t flags;
  uint32_t slot;  // the descriptor's slot, or IVGPU_NO_SLOT
  uint32_t word;  // its state word after the claim
  uint32_t reserved;
  char release[32];  // the module's, NUL-terminated
};

#define IVGPU_QUIET_BYTES (IVGPU_ARENA_OFFSET + (8 << 20))  // rings, mailboxes, and the library's staging memory

// Claims a Ready slot, and waits up to `timeout_ms` for one. EBUSY: the descriptor has a slot. ETIMEDOUT: no slot
// became Ready. EINTR: a signal came.
struct IvgpuModuleClaim {
  uint32_t timeout_ms;
  uint32_t slot;  // returned: the slot
  uint32_t word;  // returned: its state word, Claimed
  uint32_t reserved;
  char name[sizeof(((struct IvgpuSlotEntry*)0)->program)];  // the program's name; "": the kernel's name for it
};

// Sleeps while the 32-bit word at `offset` of the own slot holds `expected`, like FUTEX_WAIT. The kernel checks the
// word before it sleeps and at each interrupt of the slot. 0: the word has changed. EAGAIN: it did not hold `expected`
// at the start. ETIMEDOUT. EINTR: a signal came; the call is not restarted, since its time limit is relative. ENOSPC:
// IVGPU_MAX_SLEEPERS threads already sleep on this slot.
struct IvgpuModuleWait {
  uint64_t offset;      // a multiple of 4, below the arena (IVGPU_ARENA_OFFSET)
  uint64_t timeout_ns;  // IVGPU_FOREVER: no limit
  uint32_t expected;
  uint32_t reserved;
};
#define IVGPU_FOREVER 0xffffffffffffffffULL
#define IVGPU_MAX_SLEEPERS 256  // a thread of each channel, callbacks, and as many again; an interrupt checks each

// The arguments of RING.
#define IVGPU_RING_BROKER 0
#define IVGPU_RING_WORKER 1  // the own slot's worker
// Increments RegionHeader's gpu_questions, which a program may not write, and rings the broker. Needs no slot. EINVAL:
// a module of interface 1.
#define IVGPU_RING_GPUS 2

#define IVGPU_IOC_INFO _IOR(0xbd, 0, struct IvgpuModuleInfo)
#define IVGPU_IOC_CLAIM _IOWR(0xbd, 1, struct IvgpuModuleClaim)
#define IVGPU_IOC_RELEASE _IO(0xbd, 2)
#define IVGPU_IOC_RING _IO(0xbd, 3)     // the argument itself: IVGPU_RING_...
#define IVGPU_IOC_EVENTFD _IO(0xbd, 4)  // the argument itself: an eventfd to signal at each interrupt, or -1
#define IVGPU_IOC_WAIT _IOW(0xbd, 5, struct IvgpuModuleWait)

IVGPU_SIZE(IvgpuModuleInfo, 96);
IVGPU_SIZE(IvgpuModuleClaim, 40);
IVGPU_SIZE(IvgpuModuleWait, 24);
