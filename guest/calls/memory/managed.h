// Managed memory as calls name it: blocks of the arena, which program and GPU have at one address.
#pragma once

#include <cstddef>

#include "ring/api/cuda.h"

namespace guest::calls {

// Whether all of the range is managed memory of one allocation.
bool is_managed_range(CUdeviceptr start, std::size_t bytes);

// Says whether there is such a place; a device that there is not is called INVALID_DEVICE, anything else INVALID_VALUE.
CUresult judge_place(const CUmemLocation& place);

// A place as the older calls name it: a device's number, or CU_DEVICE_CPU.
CUmemLocation place_of_number(CUdevice number);
CUdevice number_of_place(const CUmemLocation& place);  // the other way; CU_DEVICE_INVALID for none

}  // namespace guest::calls
