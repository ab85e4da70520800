// A map from addresses to all allocations of the driver, on devices and on the host.
#pragma once

#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "host/simgpu/engine.h"

namespace simgpu {

struct Context;
struct Device;
class MemoryPool;

enum class MemoryKind : std::uint8_t {
  Device,      // by cuMemAlloc
  Managed,     // by cuMemAllocManaged or a managed variable; the host may access the memory
  Pool,        // by cuMemAllocAsync
  Host,        // by cuMemHostAlloc
  Registered,  // by cuMemHostRegister
  Mapped,      // by cuMemMap
};

struct Allocation {
  Address start = 0;
  std::size_t size = 0;
  MemoryKind kind = MemoryKind::Device;
  Device* device = nullptr;
  Context* context = nullptr;
  unsigned flags = 0;
  std::uint64_t id = 0;                        // value of CU_POINTER_ATTRIBUTE_BUFFER_ID
  std::shared_ptr<MemoryPool> pool = nullptr;  // set only for kind Pool
  bool sync_memops = false;
  bool is_variable = false;                  // a managed variable, which is freed with its module
  std::pair<Address, std::size_t> around{};  // the reservation; set only for kind Mapped

  bool on_host() const { return kind == MemoryKind::Host || kind == MemoryKind::Registered; }
};

// All members are thread-safe.
class MemoryMap {
 public:
  void insert(const Allocation& allocation);
  // Removes and returns the allocation that starts at `start`, if `wanted` accepts its kind.
  template <class Wanted>
  std::optional<Allocation> take(Address start, Wanted wanted) {
    const ring::MutexLock lock(mutex_);
    const auto found = map_.find(start);
    if (found == map_.end() || !wanted(found->second)) return std::nullopt;
    const Allocation allocation = found->second;
    map_.erase(found);
    return allocation;
  }
  std::optional<Allocation> find(Address inside) const;
  bool overlaps(Address start, std::size_t size) const;
  bool set_sync_memops(Address inside, bool value);
  // Removes and returns all allocations that end with the context. Pool memory is not among them: it belongs to its
  // pool.
  std::vector<Allocation> take_all(const Context* context);

 private:
  const Allocation* find_locked(Address inside) const REQUIRES(mutex_);

  mutable ring::Mutex mutex_;
  std::map<Address, Allocation> map_ GUARDED_BY(mutex_);
};

}  // namespace simgpu
