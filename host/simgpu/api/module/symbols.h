// Every entry point of the driver API by name.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <span>
#include <string_view>

#include "ring/abi/proc_address.h"

namespace simgpu {

// Calls that are not served, too: their functions refuse (absent.cc).
std::span<const cuabi::ProcEntry> entry_points();

// The address of an exported symbol, "cuMemAlloc_v2"; null where this library has it not.
void (*function_of(std::string_view symbol))();

}  // namespace simgpu

// For tests: true if the library serves the call of this name, of which it exports a function in any case.
extern "C" __attribute__((visibility("default"))) bool ivgpu_sim_serves(const char* symbol);
