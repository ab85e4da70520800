// The map of addresses: every allocation that the driver handed out, device and host.
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
  Managed,     // cuMemAllocManaged, or a variable: device memory that the host may touch, too
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
  bool is_variable = false;                  // a module's managed variable, which goes with the module
  std::pair<Address, std::size_t> around{};  // Mapped only: the reservation

  bool on_host() const { return kind == MemoryKind::Host || kind == MemoryKind::Registered; }
};

// Threads: any.
class MemoryMap {
 public:
  void insert(const Allocation& allocation);
  // The allocation that starts here, if it is of one of these kinds; it is no longer in the map.
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
  // Everything that ends with a context, taken out. Memory of a pool belongs to the pool.
  std::vector<Allocation> take_all(const Context* context);

 private:
  const Allocation* find_locked(Address inside) const;

  mutable std::mutex mutex_;
  std::map<Address, Allocation> map_;
};

}  // namespace simgpu
