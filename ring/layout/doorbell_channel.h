// The bytes of a doorbell channel between the broker and a program of a VM whose region is no ivshmem device. Such a VM
// has neither a doorbell register nor an interrupt (docs/design/036-other-ways-in.md).
//
// One byte is one message. A channel is either a virtio-serial port or a vsock connection. One process at a time can
// open a virtio-serial port, and neither side learns that the process has changed. A byte must therefore have a meaning
// by itself. A byte may arrive too often, never, or from a process that has ended. A vsock connection
// (docs/design/037-vsock.md) ends with its process.
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

// Guest to broker. A byte below max_slots is a slot's number: the interrupts of this slot's worker are sent through
// this channel from now on. doorbell_look: bits are set in the header (`doorbell_bits`), so look at the bits now.
inline constexpr unsigned char doorbell_look = 0x80;
static_assert(max_slots <= doorbell_look);

// Broker to guest. A worker has signalled, so check the words on which threads sleep. On a vsock connection the first
// of these bytes means that the broker has accepted the connection.
inline constexpr unsigned char doorbell_woken = 1;

// The prefix of the ports' names in QEMU's options.
inline constexpr char doorbell_port[] = "org.ivgpu.bell";

// The region's start in the memory that QEMU opens for an NVDIMM or a virtio-pmem device. The kernel's description of
// the memory lies before the region (host/broker/region/dax_label.h). The guest's devdax device omits this description.
inline constexpr std::size_t devdax_start = huge_page;

}  // namespace ring
