// Managed memory as the calls describe it.
#pragma once

#include "host/simgpu/api/driver.h"

#include <cstddef>

namespace simgpu {

// True if the whole range lies in one managed allocation or variable.
bool is_managed_range(Driver& driver, Address start, std::size_t size);

// CUDA_SUCCESS if the location exists, else INVALID_DEVICE for a device and INVALID_VALUE for any other type.
CUresult judge_place(Driver& driver, const CUmemLocation& place);

// The location for older calls' device number or CU_DEVICE_CPU.
CUmemLocation place_of_number(CUdevice number);
CUdevice number_of_place(const CUmemLocation& place);  // the inverse; CU_DEVICE_INVALID for none

}  // namespace simgpu
