// The bytes of a doorbell channel between the broker and a program of a VM whose region is no ivshmem device. Such a VM
// has neither a doorbell register nor an interrupt (docs/design/036-other-ways-in.md).
//
// One byte is one message. The channel is a virtio-serial port, which one process has open at a time, and neither side
// learns that the process has changed. So a byte has a meaning by itself. It may come too often, never, or from a
// process that has ended. Or the channel is a vsock connection (docs/design/037-vsock.md), which ends with its process.
//
// ```cpp
// void take(unsigned char byte, void (*look)(), void (*serve)(std::uint32_t slot)) {
//   if (byte == ring::bell_look) look();        // at the bits in the region's header
//   if (byte < ring::max_slots) serve(byte);    // this channel gets that slot's interrupts from now on
// }
// ```
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
