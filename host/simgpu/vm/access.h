// Resolves addresses to host memory for each lane. This is the complete, slow path behind the fast paths of
// ops/memory.cc. Each access to device memory is resolved here, or is checked against a window that was computed here.
#pragma once

#include <cstdint>

#include "host/simgpu/vm/ctx.h"

namespace simgpu {

// Computes the host addresses for `bytes` at addresses[l] (generic or global) of the masked lanes. Returns false after
// recording a fault. Stores the range of the last lane in the instruction's window.
bool resolve_global(Ctx& c, const Ins* i, const std::uint64_t* addresses, std::uint32_t bytes, std::uint64_t* host);
// Computes the host addresses for offsets into the instruction's state space.
bool resolve_offsets(Ctx& c, const Ins* i, const std::uint64_t* offsets, std::uint32_t bytes, std::uint64_t* host);

// Resolves one address of one lane, for host functions. Returns 0 if the address is invalid, and records no fault.
std::uint64_t resolve_one(Ctx& c, unsigned lane, std::uint64_t address, std::uint32_t bytes);

// Returns how many of the bytes, from the first on, are in global memory. They may span adjacent ranges.
std::uint64_t bytes_held(Ctx& c, std::uint64_t address, std::uint64_t bytes);

// Records a fault of the instruction at `lane` and returns Ctx::stop.
const Ins* raise_fault(Ctx& c, const Ins* i, CUresult code, unsigned lane, const std::string& what);
// Record a fault for an access outside all allocations, and for a misaligned access.
const Ins* illegal_access(Ctx& c, const Ins* i, unsigned lane, std::uint64_t address, std::uint32_t bytes);
const Ins* misaligned_access(Ctx& c, const Ins* i, unsigned lane, std::uint64_t address, std::uint32_t bytes);

}  // namespace simgpu
