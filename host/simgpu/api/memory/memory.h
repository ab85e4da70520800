// Allocations of the simulated driver and address lookups.
#pragma once

#include "host/simgpu/api/objects.h"

#include <cstddef>
#include <memory>
#include <optional>

#include "host/simgpu/api/driver.h"

namespace simgpu {

// Frees the memory of an allocation that was removed from the map.
void give_back(Driver& driver, const Allocation& allocation);

// The live range of any device that contains the address.
std::optional<Range> range_of(Driver& driver, Address address);

// True if device work may access all of [address, address+size).
bool reachable(Driver& driver, Address address, std::size_t size, bool to_write = false);
// Same for host calls, to which memory freed in stream order is unknown immediately.
bool known(Driver& driver, Address address, std::size_t size, bool to_write = false);

// Allocates device memory for `context` and enters it in the map. Returns 0 if there is not enough.
Address allocate(Driver& driver, Context& context, MemoryKind kind, std::size_t size);
// Enters an existing range of the context's device as an allocation.
void enter(Driver& driver, Context& context, MemoryKind kind, Address start, std::size_t size,
           const std::shared_ptr<MemoryPool>& pool = nullptr);

inline Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

}  // namespace simgpu
