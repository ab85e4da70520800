// The memory of a session: what it may name, what its broker counts, and what the driver holds for it.
//
// Thread-safety: any thread; each part is safe by itself.
#pragma once

#include <cstdint>

#include "host/driver/driver.h"
#include "host/session/memory/addresses.h"
#include "host/session/memory/avoided.h"
#include "host/session/memory/charges.h"
#include "host/session/memory/device_memory.h"
#include "host/session/memory/mirrors.h"
#include "host/session/memory/pools.h"
#include "host/session/memory/virtual_ranges.h"
#include "host/session/telemetry.h"

namespace host {

struct SessionMemory {
  SessionMemory(const Driver& driver, Lender* lender, const Telemetry& telemetry)
      : device(lender, telemetry.page().taken),
        pools(driver, device),
        addresses(&telemetry.page().device_memory, [this](const Range& allocation) { ended(allocation); }) {
    device.when_full([this](unsigned full) { pools.trim(full); });
  }

  // Whether the address lies in memory of the session, or in a range that the session has reserved.
  bool knows(std::uint64_t at) const { return addresses.knows(at) || reserved.holds(at, 1); }
  // The driver has freed an allocation.
  void ended(const Range& allocation) {
    device.give_back(allocation.device, allocation.charged);
    pools.ended(allocation.pool);
  }
  // The driver has ended an object: the memory that belongs to it and its charge go with it.
  void forget(std::uint64_t id) {
    addresses.drop_owned(id);
    charges.drop(id);
  }

  DeviceMemory device;
  Pools pools;
  Charges charges;
  Addresses addresses;
  VirtualRanges reserved{addresses};
  Mirrors mirrors;
  Avoided excluded;
};

}  // namespace host
