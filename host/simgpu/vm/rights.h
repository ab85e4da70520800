// Read-only memory: a mapping of virtual memory may permit only reads. Loads and stores resolve memory in the same way
// (access.h), so a flag marks the writes.
#pragma once

#include <cstdint>

#include "host/simgpu/vm/ctx.h"

namespace simgpu {

// A bit of Ins::flags in addition to those of code.h: the instruction is a store or an atomic.
inline constexpr std::uint32_t flag_writes = 1U << 14;

// Like resolve_one(), for memory that will be written. Returns 0 if the memory is read-only.
std::uint64_t resolve_one_to_write(Ctx& c, unsigned lane, std::uint64_t address, std::uint32_t bytes);

}  // namespace simgpu
