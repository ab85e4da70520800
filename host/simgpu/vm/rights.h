// Access to memory that may only be read: a mapping of virtual memory has such rights. A load and a store find their memory
// in the same way (access.h), so what writes is marked.
#pragma once

#include <cstdint>

#include "host/simgpu/vm/ctx.h"

namespace simgpu {

// Ins::flags, beside those of code.h: a store or an atomic.
inline constexpr std::uint32_t flag_writes = 1U << 14;

// As resolve_one, of memory that will be written.
std::uint64_t resolve_one_to_write(Ctx& c, unsigned lane, std::uint64_t address, std::uint32_t bytes);

}  // namespace simgpu
