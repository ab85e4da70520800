// A CID and a port of vsock for one guest, which no other VM and no other program of this machine has: of two `ivgpu vm` at
// the same time each finds its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "tools/ivgpu/support/child.h"

namespace ivgpu {

struct VsockPlace {
  Fd device;               // of /dev/vhost-vsock, for QEMU: while it is open the CID is nobody else's
  std::uint32_t both = 0;  // CID and port: the same number, so who has the one has the other
};

// An Error that says what this machine lacks, and the remedy.
VsockPlace take_vsock(const char* device = "/dev/vhost-vsock");

// The first number from `first` on, among so many, whose CID could be taken and whose port is free; a number that has
// failed is not asked for again. Throws what they throw.
std::optional<std::uint32_t> first_free(std::uint32_t first, std::uint32_t count,
                                        const std::function<bool(std::uint32_t)>& takes_cid,
                                        const std::function<bool(std::uint32_t)>& port_is_free);

}  // namespace ivgpu
