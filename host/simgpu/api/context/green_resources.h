// CUdevResource: what a program holds of multiprocessors.
#pragma once

#include <optional>

#include "host/simgpu/api/context/green.h"

namespace simgpu {

CUdevResource resource_of(const Multiprocessors& part);

// What a program has given back; nothing if it is no such resource.
std::optional<Multiprocessors> multiprocessors_in(const CUdevResource& resource);

// All of a device's.
Multiprocessors all_of_device(int device);

}  // namespace simgpu
