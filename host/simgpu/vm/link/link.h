// The linker's steps in their order. Internal to link*.cc. A step requires the previous steps, and throws ptx::Error or
// LoadFailure.
#pragma once

#include "host/simgpu/vm/program.h"

namespace simgpu {

inline constexpr std::uint32_t max_local = 512 * 1024;  // bytes per thread, as on a device

// link_names.cc: creates symbols and plans for all definitions, and resolves names.
void define_names(Program& program);

// link_memory.cc: lays out frames, parameters and variables, and writes initial values. The program owns the memory
// once it is allocated, even if a later step fails.
void plan_functions(Unit& unit);
void place_memory(Program& program, AddressSpace& space);

// link_kernels.cc: adds up the requirements of each kernel and its callees. All functions must have been lowered.
void describe_kernels(Program& program);

}  // namespace simgpu
