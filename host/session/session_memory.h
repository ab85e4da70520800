// A session's memory: the addresses that it may use, the account with its broker, the driver's pools, and the graphs of
// kernels that channels keep.
//
// Thread-safety: any thread; each member is safe by itself.
#pragma once

#include <cstdint>

#include "host/driver/driver.h"
#include "host/session/graphs/kept_graphs.h"
#include "host/session/memory/addresses.h"
#include "host/session/memory/charges.h"
#include "host/session/memory/device_memory.h"
#include "host/session/memory/excluded_ranges.h"
#include "host/session/memory/pools.h"
#include "host/session/memory/shadow_copies.h"
#include "host/session/memory/virtual_ranges.h"
#include "host/session/telemetry.h"

namespace host {

struct SessionMemory {
  SessionMemory(const Driver& driver, MemoryReserver* reserver, const Telemetry& telemetry)
      : device(reserver, telemetry.page().taken),
        pools(driver, device),
        addresses(&telemetry.page().device_memory, [this](const Range& allocation) { ended(allocation); }) {
    device.when_full([this](unsigned full) {
      pools.trim(full);
      kept_graphs.make_room(full);
    });
  }

  // Returns whether the address is in the session's memory, or in a range that the session has reserved.
  bool knows(std::uint64_t at) const { return addresses.knows(at) || reserved.holds(at, 1); }
  // Called when the driver has freed an allocation.
  void ended(const Range& allocation) {
    device.give_back(allocation.device, allocation.charged);
    pools.ended(allocation.pool);
  }
  // Called when the driver has ended an object. Forgets the object's memory and its charge.
  void forget(std::uint64_t id) {
    addresses.drop_owned(id);
    charges.drop(id);
  }

  DeviceMemory device;
  KeptGraphs kept_graphs{device};
  Pools pools;
  Charges charges;
  Addresses addresses;
  VirtualRanges reserved{addresses};
  ShadowCopies shadow_copies;
  ExcludedRanges excluded;
};

}  // namespace host
