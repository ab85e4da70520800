// Maps addresses to all allocations of the driver, device and host.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "host/simgpu/engine.h"

namespace simgpu {

struct Context;
struct Device;
class MemoryPool;

enum class MemoryKind : std::uint8_t {
  Device,      // cuMemAlloc
  Managed,     // cuMemAllocManaged or a managed variable; the host may access it
  Pool,        // cuMemAllocAsync
  Host,        // cuMemHostAlloc
  Registered,  // cuMemHostRegister
  Mapped,      // cuMemMap
};

struct Allocation {
  Address start = 0;
  std::size_t size = 0;
  MemoryKind kind = MemoryKind::Device;
  Device* device = nullptr;
  Context* context = nullptr;
  unsigned flags = 0;
  std::uint64_t id = 0;                        // CU_POINTER_ATTRIBUTE_BUFFER_ID
  std::shared_ptr<MemoryPool> pool = nullptr;  // Pool only
  bool sync_memops = false;
  bool is_variable = false;                  // a module's managed variable, which is freed with the module
  std::pair<Address, std::size_t> around{};  // Mapped only: the reservation

  bool on_host() const { return kind == MemoryKind::Host || kind == MemoryKind::Registered; }
};

// Thread-safe.
class MemoryMap {
 public:
  void insert(const Allocation& allocation);
  // Removes and returns the allocation that starts here, if `wanted` accepts its kind.
  template <class Wanted>
  std::optional<Allocation> take(Address start, Wanted wanted) {
    const std::lock_guard lock(mutex_);
    const auto found = map_.find(start);
    if (found == map_.end() || !wanted(found->second)) return std::nullopt;
    const Allocation allocation = found->second;
    map_.erase(found);
    return allocation;
  }
  std::optional<Allocation> find(Address inside) const;
  bool overlaps(Address start, std::size_t size) const;
  bool set_sync_memops(Address inside, bool value);
  // Removes and returns all allocations that end with a context. Pool memory belongs to its pool.
  std::vector<Allocation> take_all(const Context* context);

 private:
  const Allocation* find_locked(Address inside) const;

  mutable std::mutex mutex_;
  std::map<Address, Allocation> map_;
};

}  // namespace simgpu
