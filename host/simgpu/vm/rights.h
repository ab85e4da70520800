// Read-only memory: mappings of virtual memory may have this right. Loads and stores resolve memory the same way
// (access.h), so a flag marks writes.
#pragma once

#include <cstdint>

#include "host/simgpu/vm/ctx.h"

namespace simgpu {

// An Ins::flags bit besides those of code.h: a store or an atomic.
inline constexpr std::uint32_t flag_writes = 1U << 14;

// Same as resolve_one, for memory that will be written.
std::uint64_t resolve_one_to_write(Ctx& c, unsigned lane, std::uint64_t address, std::uint32_t bytes);

}  // namespace simgpu
