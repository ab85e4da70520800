// The linker's steps in order, internal to link*.cc. Each needs the steps before it and throws ptx::Error and
// LoadFailure.
#pragma once

#include "host/simgpu/vm/program.h"

namespace simgpu {

inline constexpr std::uint32_t max_local = 512 * 1024;  // per thread, as on the device

// link_names.cc: creates symbols and plans for all definitions, and resolves names.
void define_names(Program& program);

// link_memory.cc: lays out frames, parameters and variables, and writes initial values. The program owns the memory
// once allocated, even if a later step fails.
void plan_functions(Unit& unit);
void place_memory(Program& program, AddressSpace& space);

// link_kernels.cc: sums each kernel's requirements over its callees. Functions must be lowered.
void describe_kernels(Program& program);

}  // namespace simgpu
