// Every entry point of the driver API by name.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <span>
#include <string_view>

#include "ring/abi/proc_address.h"

namespace simgpu {

// Returns all entry points, including those of absent.cc, which refuse every call.
std::span<const cuabi::ProcEntry> entry_points();

// Returns the address of an exported symbol such as "cuMemAlloc_v2"; null if this library lacks the symbol.
void (*function_of(std::string_view symbol))();

}  // namespace simgpu

// For tests: returns true if the library serves this call. Calls that are not served are exported as well.
extern "C" __attribute__((visibility("default"))) bool ivgpu_sim_serves(const char* symbol);
