// Allocations of the simulated driver, and lookups of addresses in them.
#pragma once

#include "host/simgpu/api/objects.h"

#include <cstddef>
#include <memory>
#include <optional>

#include "host/simgpu/api/driver.h"

namespace simgpu {

// Returns the memory of an allocation that is no longer in the map.
void give_back(Driver& driver, const Allocation& allocation);

// The live range, of any device, that an address lies in.
std::optional<Range> range_of(Driver& driver, Address address);

// True if all of [address, address+size) is memory that work of a device may read, or write.
bool reachable(Driver& driver, Address address, std::size_t size, bool to_write = false);
// The same for a call of the host, to which memory that was freed in the order of a stream is unknown at once.
bool known(Driver& driver, Address address, std::size_t size, bool to_write = false);

// Device memory for `context`, entered in the map. 0 when there is not enough.
Address allocate(Driver& driver, Context& context, MemoryKind kind, std::size_t size);
// Enters an allocation of the context's device that is a range already.
void enter(Driver& driver, Context& context, MemoryKind kind, Address start, std::size_t size,
           const std::shared_ptr<MemoryPool>& pool = nullptr);

inline Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

}  // namespace simgpu
