// Every entry point of the driver API by name.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <span>
#include <string_view>

#include "ring/abi/proc_address.h"

namespace simgpu {

// Includes unserved calls, whose functions refuse (absent.cc).
std::span<const cuabi::ProcEntry> entry_points();

// The address of an exported symbol such as "cuMemAlloc_v2"; null if this library lacks it.
void (*function_of(std::string_view symbol))();

}  // namespace simgpu

// For tests: true if the library serves this call. All calls are exported, served or not.
extern "C" __attribute__((visibility("default"))) bool ivgpu_sim_serves(const char* symbol);
