// The bytes of a doorbell channel between the broker and a program of a VM whose region is no ivshmem device. Such a VM
// has neither a doorbell register nor an interrupt (docs/design/036-other-ways-in.md).
//
// One byte is one message. The channel is a virtio-serial port, which one process at a time has open. Neither side
// learns that the process has changed, so a byte must have a meaning by itself. It may come too often, never, or from a
// process that has ended. Or the channel is a vsock connection (docs/design/037-vsock.md), which ends with its process.
//
// ```cpp
// void take(unsigned char byte, void (*look)(), void (*serve)(std::uint32_t slot)) {
//   if (byte == ring::doorbell_look) look();        // at the bits in the region's header
//   if (byte < ring::max_slots) serve(byte);    // this channel gets that slot's interrupts from now on
// }
// ```
#pragma once

#include "ring/layout/layout.h"

namespace ring {

// Guest to broker. A byte below max_slots is a slot's number: its worker's interrupts come through this channel from
// now on.
inline constexpr unsigned char doorbell_look = 0x80;  // bits are set in the header (`doorbell_bits`): look at them now
static_assert(max_slots <= doorbell_look);

// Broker to guest: a worker has rung; check the words that you sleep on. On a vsock connection the first such byte
// means that the broker has accepted it.
inline constexpr unsigned char doorbell_woken = 1;

// The prefix of the ports' names in QEMU's options.
inline constexpr char doorbell_port[] = "org.ivgpu.bell";

// The region's start in the memory that QEMU opens for an NVDIMM or a virtio-pmem device. Before it lies the kernel's
// description of the memory (host/broker/region/dax_label.h), which the guest's devdax device omits.
inline constexpr std::size_t devdax_start = huge_page;

}  // namespace ring
