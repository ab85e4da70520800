// Resolves addresses to host memory, lane by lane: the complete, slow path behind the fast ones in ops/memory.cc. Each
// device access goes through here or is checked against a window from here.
#pragma once

#include <cstdint>

#include "host/simgpu/vm/ctx.h"

namespace simgpu {

// Host addresses for `bytes` at addresses[l] (generic or global) of the masked lanes. Returns false after recording a
// fault. Stores the last lane's range in the instruction's window.
bool resolve_global(Ctx& c, const Ins* i, const std::uint64_t* addresses, std::uint32_t bytes, std::uint64_t* host);
// Same for offsets into the instruction's space.
bool resolve_offsets(Ctx& c, const Ins* i, const std::uint64_t* offsets, std::uint32_t bytes, std::uint64_t* host);

// One address of one lane, for host functions; 0 if it is invalid (no fault is recorded).
std::uint64_t resolve_one(Ctx& c, unsigned lane, std::uint64_t address, std::uint32_t bytes);

// How many of the bytes, from the first on, lie in global memory; they may span adjacent ranges.
std::uint64_t bytes_held(Ctx& c, std::uint64_t address, std::uint64_t bytes);

// Records a fault of the instruction at `lane` and returns Ctx::stop.
const Ins* raise_fault(Ctx& c, const Ins* i, CUresult code, unsigned lane, const std::string& what);
// Same, for an access outside all allocations and for a misaligned access.
const Ins* illegal_access(Ctx& c, const Ins* i, unsigned lane, std::uint64_t address, std::uint32_t bytes);
const Ins* misaligned_access(Ctx& c, const Ins* i, unsigned lane, std::uint64_t address, std::uint32_t bytes);

}  // namespace simgpu
