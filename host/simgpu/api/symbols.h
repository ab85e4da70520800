// Every entry point of the driver API by name, with its address where this library has it.
#pragma once

#include <span>

#include "ring/abi/proc_address.h"

namespace simgpu {

std::span<const cuabi::ProcEntry> entry_points();

}  // namespace simgpu
