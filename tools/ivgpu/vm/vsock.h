// Reserves a vsock CID and port for one guest. Concurrent `ivgpu vm` commands get different numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "tools/ivgpu/support/child.h"

namespace ivgpu {

struct VsockPlace {
  Fd device;               // /dev/vhost-vsock for QEMU; reserves the CID while open
  std::uint32_t both = 0;  // CID and port, the same number
};

// Throws an Error that names the missing feature and its remedy.
VsockPlace take_vsock(const char* device = "/dev/vhost-vsock");

// The first of `count` numbers from `first` on whose CID could be taken and whose port is free. Tries each number once.
// Exceptions of both functions propagate.
std::optional<std::uint32_t> first_free(std::uint32_t first, std::uint32_t count,
                                        const std::function<bool(std::uint32_t)>& takes_cid,
                                        const std::function<bool(std::uint32_t)>& port_is_free);

}  // namespace ivgpu
