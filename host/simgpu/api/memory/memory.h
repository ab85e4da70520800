// Allocations of the simulated driver, and lookups of addresses.
#pragma once

#include "host/simgpu/api/objects.h"

#include <cstddef>
#include <memory>
#include <optional>

#include "host/simgpu/api/driver.h"

namespace simgpu {

// Frees the memory of an allocation that the caller has removed from the memory map.
void give_back(Driver& driver, const Allocation& allocation);

// Returns the live range that contains the address, on any device.
std::optional<Range> range_of(Driver& driver, Address address);

// Returns true if device work may access all of [address, address+size).
bool reachable(Driver& driver, Address address, std::size_t size, bool to_write = false);
// Returns true if a host call may access all of the range. Memory that was freed in stream order is unknown to host
// calls immediately.
bool known(Driver& driver, Address address, std::size_t size, bool to_write = false);

// Allocates device memory for `context` and adds it to the memory map. Returns 0 if the device has too little memory.
Address allocate(Driver& driver, Context& context, MemoryKind kind, std::size_t size);
// Adds an existing range of the context's device to the memory map.
void enter(Driver& driver, Context& context, MemoryKind kind, Address start, std::size_t size,
           const std::shared_ptr<MemoryPool>& pool = nullptr);

inline Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

}  // namespace simgpu
