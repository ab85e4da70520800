// The default and the current memory pool of a location and allocation type.
#pragma once

#include "host/simgpu/api/objects.h"

namespace simgpu {

class Driver;
class MemoryPool;

// Returns true if the location type is valid.
constexpr bool is_kind_of_place(CUmemLocationType type) {
  return type >= CU_MEM_LOCATION_TYPE_INVALID && type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

// Returns the device that provides the location's memory; null if there is none. The first device provides host memory.
Device* device_of_place(Driver& driver, const CUmemLocation& location, CUmemAllocationType type);

// Returns the pool from which cuMemAllocAsync allocates.
CUmemoryPool current_pool(Device& device);

// Replaces a destroyed pool by the default pool at each location where it was the current pool.
void forget_pool(Driver& driver, const MemoryPool& pool);

}  // namespace simgpu
