// Managed memory in calls. Managed memory consists of arena blocks, which program and GPU use at the same address.
#pragma once

#include <cstddef>

#include "ring/api/cuda.h"

namespace guest::calls {

// Returns whether the whole range is managed memory of one allocation.
bool is_managed_range(CUdeviceptr start, std::size_t bytes);

// Checks that the place exists. Returns INVALID_DEVICE for an unknown device, INVALID_VALUE for any other unknown
// place.
CUresult judge_place(const CUmemLocation& place);

// Converts the place of an older call: a device's number, or CU_DEVICE_CPU.
CUmemLocation place_of_number(CUdevice number);

}  // namespace guest::calls
