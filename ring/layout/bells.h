// What passes on a bell channel, one byte at a time: between the broker and a program of a VM whose region is no
// ivshmem device, so that neither register nor interrupt is there (docs/design/036-other-ways-in.md). The channel is
// a virtio-serial port, which one process has open at a time, and which tells neither side that the process has changed.
// So a byte means something by itself, and each may come too often, never, or from somebody who has ended. Or it is a
// connection by vsock (docs/design/037-vsock.md), a process's own, with whose end the process has ended.
#pragma once

#include "ring/layout/layout.h"

namespace ring {

// Guest to broker. Of less than max_slots: the number of a slot, whose worker's interrupts come by this channel from now
// on.
inline constexpr unsigned char bell_look = 0x80;  // bits are set in the header (`rung`): look at them now
static_assert(max_slots <= bell_look);

// Broker to guest: a worker has rung; look at the words that you sleep on. By vsock the first one says that the broker has
// taken the connection.
inline constexpr unsigned char bell_woken = 1;

// How the names of the ports begin, which QEMU's options give them.
inline constexpr char bell_port[] = "org.ivgpu.bell";

// The region's start in the memory that QEMU opens for an NVDIMM or a virtio-pmem device: before it lies the kernel's
// own description of the memory (host/broker/region/dax_label.h), which the guest's devdax device leaves out.
inline constexpr std::size_t devdax_start = huge_page;

}  // namespace ring
