// The steps of the linking, in their order; internal to link*.cc. Each builds on the ones before it and throws
// ptx::Error and LoadFailure.
#pragma once

#include "host/simgpu/vm/program.h"

namespace simgpu {

inline constexpr std::uint32_t max_local = 512 * 1024;  // of a thread, as the device's

// link_names.cc: symbols and plans for the definitions of all texts, and names that lead to them.
void define_names(Program& program);

// link_memory.cc: frames and parameters of a text's functions; places of all variables, and their initial values. The
// memory is the program's from the moment it is allocated, even if a later step fails.
void plan_functions(Unit& unit);
void place_memory(Program& program, AddressSpace& space);

// link_kernels.cc: each kernel's needs, with those of everything that it calls. The functions are lowered by then.
void describe_kernels(Program& program);

}  // namespace simgpu
