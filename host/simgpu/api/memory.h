// Allocations of the simulated driver, and lookups of addresses in them.
#pragma once

#include "host/simgpu/api/objects.h"

#include <cstddef>
#include <optional>

#include "host/simgpu/api/driver.h"

namespace simgpu {

// Returns the memory of an allocation that is no longer in the map.
void give_back(Driver& driver, const Allocation& allocation);

// The live range, of any device, that an address lies in.
std::optional<Range> range_of(Driver& driver, Address address);

// True if all of [address, address+size) lies in one live range: memory that a device may touch.
bool reachable(Driver& driver, Address address, std::size_t size);

// Device memory for `context`, entered in the map. 0 when there is not enough.
Address allocate(Driver& driver, Context& context, MemoryKind kind, std::size_t size, CUmemoryPool pool = nullptr);

inline Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

}  // namespace simgpu
