// The memory of this process's session: which addresses belong to the GPU, and where their bytes are.
//
// Thread-safety: any thread; each member is safe by itself. Session::open() makes the arena and registered memory
// before another thread sees the session.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "guest/objects/memory/addresses.h"
#include "guest/objects/memory/arena.h"
#include "guest/objects/memory/managed_ranges.h"
#include "guest/objects/memory/occupied.h"
#include "guest/objects/memory/registered.h"
#include "guest/objects/memory/virtual_ranges.h"
#include "ring/layout/layout.h"

namespace guest {

// For each device, the handle of the pool from which cuMemAllocAsync allocates; 0: the default pool.
class CurrentPools {
 public:
  std::uint64_t of(std::uint32_t device) const { return pools_[device].load(std::memory_order_relaxed); }
  void set(std::uint32_t device, std::uint64_t pool) { pools_[device].store(pool, std::memory_order_relaxed); }
  // Called when the pool has ended. The pool's devices use the default pool again.
  void forget(std::uint64_t pool) {
    for (auto& p : pools_) {
      std::uint64_t expected = pool;
      p.compare_exchange_strong(expected, 0, std::memory_order_relaxed);
    }
  }

 private:
  std::array<std::atomic<std::uint64_t>, ring::max_devices> pools_{};
};

struct SessionMemory {
  explicit SessionMemory(bool reserve_device) : addresses(reserve_device) {}

  // Returns whether the address lies in GPU memory, or in a range that the program has reserved.
  bool knows(std::uint64_t at) const {
    return addresses.find(at).kind != Place::Kind::Unknown || reserved.find(at).has_value();
  }
  // Returns whether this address lies in the arena's own mapping. Addresses of managed variables do not.
  bool in_arena(std::uint64_t at) const { return at - reinterpret_cast<std::uint64_t>(arena->at(0)) < arena->bytes(); }

  Addresses addresses;
  Occupied occupied;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<Registered> registered;
  ManagedRanges managed;
  std::atomic<std::uint64_t> next_buffer_id{1};
  VirtualRanges reserved{addresses, next_buffer_id};
  CurrentPools pools;
  std::atomic<std::uint64_t> staged_bytes{0};  // bulk data through the arena, for statistics
};

}  // namespace guest
