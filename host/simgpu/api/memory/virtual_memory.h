// Virtual memory management: reserved address ranges, memory objects, and mappings of objects to addresses.
//
// The state is independent of contexts. Thread-safe. Lock order: this object's mutex comes before the mutexes of device
// ranges and of the memory map.
#pragma once

#include "host/simgpu/api/objects.h"
#include "ring/base/mutex.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "host/simgpu/memory/physical.h"
#include "host/simgpu/memory/reservations.h"

namespace simgpu {

class Driver;

class VirtualMemory {
 public:
  static constexpr std::size_t granularity = std::size_t{2} << 20;
  static bool whole(std::uint64_t size) { return size % granularity == 0; }

  // `capacity` limits the sum of all memory objects in bytes. Devices count their own use.
  VirtualMemory(Driver& driver, std::size_t capacity) : driver_(driver), physical_(capacity) {}

  CUresult reserve(Address* out, std::size_t size, std::size_t alignment, Address hint);
  CUresult free(Address start, std::size_t size);

  CUresult create(CUmemGenericAllocationHandle* out, std::size_t size, const CUmemAllocationProp& properties,
                  Device& device);
  CUresult release(CUmemGenericAllocationHandle handle);
  CUresult retain(CUmemGenericAllocationHandle* out, Address inside);
  CUresult properties(CUmemAllocationProp* out, CUmemGenericAllocationHandle handle);

  CUresult map(Address start, std::size_t size, CUmemGenericAllocationHandle handle);
  CUresult unmap(Address start, std::size_t size);
  CUresult set_access(Address start, std::size_t size, Device& device, CUmemAccess_flags flags);
  // A null device stands for the host.
  CUresult access(unsigned long long* out, const Device* device, Address inside);

 private:
  struct Object {
    CUmemGenericAllocationHandle handle = 0;
    std::uint64_t offset = 0;
    std::size_t size = 0;
    CUmemAllocationProp properties{};
    Device* device = nullptr;
    std::size_t handles = 1, mappings = 0;  // the object is destroyed when both counters are 0
  };
  struct Mapping {
    std::size_t size = 0;
    Object* object = nullptr;
    std::map<const Device*, CUmemAccess_flags> access;
  };
  using Mappings = std::map<Address, Mapping>;
  struct Reservation {
    std::size_t size = 0;
    Mappings mappings;
  };

  Object* find_object(CUmemGenericAllocationHandle handle) REQUIRES(mutex_);
  void drop_if_unused(const Object& object) REQUIRES(mutex_);
  std::pair<const Address, Reservation>* reservation_of(Address start, std::size_t size) REQUIRES(mutex_);
  std::pair<const Address, Mapping>* mapping_of(Address inside) REQUIRES(mutex_);
  void give_access(Address start, Mapping& mapping, Device& device, CUmemAccess_flags flags) REQUIRES(mutex_);
  void end_mapping(Address start, Mapping& mapping) REQUIRES(mutex_);

  Driver& driver_;
  PhysicalMemory physical_;
  std::atomic<bool> limit_reported_{false};
  Reservations addresses_;

  ring::Mutex mutex_;
  std::map<Address, Reservation> reservations_ GUARDED_BY(mutex_);
  std::map<CUmemGenericAllocationHandle, std::unique_ptr<Object>> objects_ GUARDED_BY(mutex_);
  // Starts at a large number, as in NVIDIA's driver.
  CUmemGenericAllocationHandle next_handle_ GUARDED_BY(mutex_) = 0x5100'0000'1000;
};

}  // namespace simgpu
