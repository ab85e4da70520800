// CUdevResource: the struct in which a program describes multiprocessors.
#pragma once

#include <optional>

#include "host/simgpu/api/context/green.h"

namespace simgpu {

CUdevResource resource_of(const Multiprocessors& part);

// Reads the multiprocessors from a CUdevResource that the program passes; nullopt if it is invalid.
std::optional<Multiprocessors> multiprocessors_in(const CUdevResource& resource);

// All multiprocessors of a device.
Multiprocessors all_of_device(int device);

}  // namespace simgpu
