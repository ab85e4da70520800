// Helpers for calls on managed memory.
#pragma once

#include "host/simgpu/api/driver.h"

#include <cstddef>

namespace simgpu {

// Returns true if the whole range lies in one managed allocation or variable.
bool is_managed_range(Driver& driver, Address start, std::size_t size);

// Returns CUDA_SUCCESS if the location exists, else INVALID_DEVICE for a device and INVALID_VALUE for another type.
CUresult judge_place(Driver& driver, const CUmemLocation& place);

// Returns the location that older calls give as a device number or as CU_DEVICE_CPU.
CUmemLocation place_of_number(CUdevice number);

}  // namespace simgpu
