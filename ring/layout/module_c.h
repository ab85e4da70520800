// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0
// What a program says to the guest's kernel module, /dev/ivgpuN. Plain C11, for the module and for programs; the pages
// that are mapped through it are ring/layout/layout_c.h's.
//
// An open descriptor has one slot at most, which it claims. It reaches that slot and no other, wherever it is passed.
//   mmap      The offset is the region's: its front (the first IVGPU_FRONT_BYTES), read-only, and the descriptor's own
//             slot. Shared only. A module of interface 1 maps IVGPU_HEADER_BYTES of the front alone, and refuses more
//             with EINVAL.
//   read      Eight bytes: how often the slot's interrupt came since the last read. Waits for one without O_NONBLOCK.
//   poll      POLLIN: read would not wait, if only because the descriptor has no slot. POLLHUP: the device has gone.
//   close     Gives the slot back; so does the end of the process that claimed it, and an exec of that process that closes
//             the descriptor, whoever else has the descriptor.
//
// When a slot ends, because it was given back, or the device has gone, or its claimer has, mappings of it show no memory
// of the slot any more, for good. The slot's first IVGPU_QUIET_BYTES, and the header where the device has gone, then read
// as zeros, and what is written there is lost: so the library looks at the slot's magic after what it has read. The rest
// is what programs take for memory of their own, and raises SIGBUS. Where the module has no pages of the region (flags),
// all of it does.
//
// Errors of all calls: ENODEV, the device has gone, or the call needs a slot and the descriptor has none. EBADF, the
// call changes something and the descriptor was opened read-only. EINVAL, an argument is out of range, or reserved and
// not 0. ENOTTY, an older module.
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

// Of what is in this file; a module only ever adds to it. 2: all of the front, and IVGPU_RING_GPUS.
#define IVGPU_MODULE_INTERFACE 2
#define IVGPU_NO_SLOT 0xffffffffU

// IvgpuModuleInfo::flags
#define IVGPU_MODULE_WAKES 1U  // the module has all interrupts that its slots need: WAIT, read and poll hear of them
#define IVGPU_MODULE_WRITE_BACK 2U  // the region is mapped write-back, by entries of 2 MiB; else as the firmware says

struct IvgpuModuleInfo {
  uint32_t interface;  // IVGPU_MODULE_INTERFACE
  uint32_t layout;     // IVGPU_LAYOUT_VERSION of the region
  uint64_t region_bytes;
  uint64_t first_slot;  // checked: all slots lie within the region
  uint64_t slot_bytes;
  uint32_t slot_count;
  uint32_t peer;            // this VM's ivshmem id
  uint32_t device_vectors;  // interrupts that the device has; slot k is woken by vector k % device_vectors
  uint32_t vectors;         // of which the module has this many: those that slots use, or none
  uint32_t flags;
  uint32_t slot;  // the descriptor's slot, or IVGPU_NO_SLOT
  uint32_t word;  // what its state word became when it was claimed
  uint32_t reserved;
  char release[32];  // the module's, NUL-terminated
};

#define IVGPU_QUIET_BYTES (IVGPU_ARENA_OFFSET + (8 << 20))  // rings, mailboxes, and the library's staging memory

// Takes a slot that is Ready, and waits for one for `timeout_ms`. EBUSY: the descriptor has a slot. ETIMEDOUT: none
// became Ready. EINTR: a signal came.
struct IvgpuModuleClaim {
  uint32_t timeout_ms;
  uint32_t slot;  // returned: which
  uint32_t word;  // returned: its state word, Claimed
  uint32_t reserved;
  char name[sizeof(((struct IvgpuSlotEntry*)0)->program)];  // of the program; "": what the kernel calls it
};

// Sleeps while the 32-bit word at `offset` of the own slot holds `expected`, as FUTEX_WAIT does. The kernel looks at the
// word before it sleeps and at each interrupt of the slot. 0: the word has changed. EAGAIN: it did not hold `expected`
// at the start. ETIMEDOUT. EINTR: a signal came; the time limit is a relative one, so the call is not restarted.
// ENOSPC: IVGPU_MAX_SLEEPERS threads sleep on this slot already.
struct IvgpuModuleWait {
  uint64_t offset;      // a multiple of 4, below the arena (IVGPU_ARENA_OFFSET)
  uint64_t timeout_ns;  // IVGPU_FOREVER: without a limit
  uint32_t expected;
  uint32_t reserved;
};
#define IVGPU_FOREVER 0xffffffffffffffffULL
#define IVGPU_MAX_SLEEPERS 256  // a thread of each channel, callbacks, and as many again; an interrupt looks at each

// What RING rings.
#define IVGPU_RING_BROKER 0
#define IVGPU_RING_WORKER 1  // the own slot's
// Counts RegionHeader's gpu_questions up, which a program may not write, and rings the broker. It needs no slot. EINVAL: a
// module of interface 1.
#define IVGPU_RING_GPUS 2

#define IVGPU_IOC_INFO _IOR(0xbd, 0, struct IvgpuModuleInfo)
#define IVGPU_IOC_CLAIM _IOWR(0xbd, 1, struct IvgpuModuleClaim)
#define IVGPU_IOC_RELEASE _IO(0xbd, 2)
#define IVGPU_IOC_RING _IO(0xbd, 3)     // the argument itself: IVGPU_RING_...
#define IVGPU_IOC_EVENTFD _IO(0xbd, 4)  // the argument itself: an eventfd to be signalled at each interrupt, or -1
#define IVGPU_IOC_WAIT _IOW(0xbd, 5, struct IvgpuModuleWait)

IVGPU_SIZE(IvgpuModuleInfo, 96);
IVGPU_SIZE(IvgpuModuleClaim, 40);
IVGPU_SIZE(IvgpuModuleWait, 24);
