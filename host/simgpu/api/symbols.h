// Every entry point of the driver API by name, with its address where this library has it.
#pragma once

#include <span>
#include <string_view>

#include "ring/abi/proc_address.h"

namespace simgpu {

std::span<const cuabi::ProcEntry> entry_points();

// The address of an exported symbol, "cuMemAlloc_v2"; null where this library has it not.
void (*function_of(std::string_view symbol))();

}  // namespace simgpu
