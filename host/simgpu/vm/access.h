// Addresses to host memory, lane by lane: the slow and complete path behind the fast ones in ops/memory.cc. Every
// access of device code ends here or has been held against a window that came from here.
#pragma once

#include <cstdint>

#include "host/simgpu/vm/ctx.h"

namespace simgpu {

// Host addresses of `bytes` bytes at addresses[l] (generic or global) for the lanes of the mask. False after a fault,
// which is then recorded. Remembers the range of the last lane in the instruction's window.
bool resolve_global(Ctx& c, const Ins* i, const std::uint64_t* addresses, std::uint32_t bytes, std::uint64_t* host);
// The same for offsets into the instruction's space.
bool resolve_offsets(Ctx& c, const Ins* i, const std::uint64_t* offsets, std::uint32_t bytes, std::uint64_t* host);

// One address of one lane, for host functions; 0 when it leads nowhere (no fault is recorded).
std::uint64_t resolve_one(Ctx& c, unsigned lane, std::uint64_t address, std::uint32_t bytes);

// How many of these bytes, from the first on, lie in ranges of global memory, which may be several in a row.
std::uint64_t bytes_held(Ctx& c, std::uint64_t address, std::uint64_t bytes);

// Records a fault of the instruction at `lane` and returns Ctx::stop.
const Ins* raise_fault(Ctx& c, const Ins* i, CUresult code, unsigned lane, const std::string& what);
// The same for an access that no allocation holds, and for one whose address is no multiple of its size.
const Ins* illegal_access(Ctx& c, const Ins* i, unsigned lane, std::uint64_t address, std::uint32_t bytes);
const Ins* misaligned_access(Ctx& c, const Ins* i, unsigned lane, std::uint64_t address, std::uint32_t bytes);

}  // namespace simgpu
