// The pools of a place: one that is always there, and the one that is current. A place is a location and what is allocated
// there.
#pragma once

#include "host/simgpu/api/objects.h"

namespace simgpu {

class Driver;
class MemoryPool;

// Whether there are places of this kind.
constexpr bool is_kind_of_place(CUmemLocationType type) {
  return type >= CU_MEM_LOCATION_TYPE_INVALID && type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

// The device whose memory stands for a place; null when there is no such place. The host's memory is the first device's.
Device* device_of_place(Driver& driver, const CUmemLocation& location, CUmemAllocationType type);

// The pool that cuMemAllocAsync takes from.
CUmemoryPool current_pool(Device& device);

// The pool goes: where it is current, the default pool is again.
void forget_pool(Driver& driver, const MemoryPool& pool);

}  // namespace simgpu
