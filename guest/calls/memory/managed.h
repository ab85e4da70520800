// Managed memory in calls: blocks of the arena, which program and GPU use at one address.
#pragma once

#include <cstddef>

#include "ring/api/cuda.h"

namespace guest::calls {

// Whether the whole range is managed memory of one allocation.
bool is_managed_range(CUdeviceptr start, std::size_t bytes);

// Whether the place exists: INVALID_DEVICE for an unknown device, INVALID_VALUE for any other unknown place.
CUresult judge_place(const CUmemLocation& place);

// The place that an older call names: a device's number, or CU_DEVICE_CPU.
CUmemLocation place_of_number(CUdevice number);

}  // namespace guest::calls
