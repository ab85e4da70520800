// Managed memory as calls name it.
#pragma once

#include "host/simgpu/api/driver.h"

#include <cstddef>

namespace simgpu {

// True if all of it is managed memory of one allocation, or of one variable.
bool is_managed_range(Driver& driver, Address start, std::size_t size);

// Says whether there is such a place; a device is called INVALID_DEVICE, anything else INVALID_VALUE.
CUresult judge_place(Driver& driver, const CUmemLocation& place);

// A place as the older calls name it: a device's number, or CU_DEVICE_CPU.
CUmemLocation place_of_number(CUdevice number);
CUdevice number_of_place(const CUmemLocation& place);  // the other way; CU_DEVICE_INVALID for none

}  // namespace simgpu
