// A memory pool for allocation and free in stream order. The pool owns chunks of device memory and allocates within
// them.
//
// A freed allocation is unknown to host calls immediately, but work in flight may use it until the free executes in its
// stream. Before that time, the pool may reuse the memory for an allocation of the same size whose users run after the
// free. After that time, the memory returns to the chunk.
//
// Thread-safe. The pool's lock is held only within a member function.
#pragma once

#include "host/simgpu/api/objects.h"
#include "ring/base/mutex.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace simgpu {

class Driver;

// An allocation that was freed but whose free has not executed yet.
struct Leaving {
  Address start = 0;
  std::size_t size = 0;
  std::shared_ptr<Stream> stream;
  Ticket ticket;       // ticket of the free; null until the free enters the stream
  bool taken = false;  // the memory was reused for a new allocation
  bool over = false;   // the free has executed
};

class MemoryPool {
 public:
  MemoryPool(Device& device, const CUmemPoolProps& properties) : device_(device), properties_(properties) {}
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  CUmemoryPool handle = nullptr;             // set once, before the pool is published
  bool is_default = false;                   // set once, before the pool is published
  std::atomic<bool> given_to_device{false};  // for pools of host memory: a device may access the memory

  Device& device() const { return device_; }
  const CUmemPoolProps& properties() const { return properties_; }
  bool managed() const { return properties_.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED; }
  bool on_host() const { return !managed() && properties_.location.type != CU_MEM_LOCATION_TYPE_DEVICE; }
  // Returns true if device commands may access the pool's memory.
  bool is_reached() const { return !on_host() || given_to_device.load(std::memory_order_relaxed); }

  // Returns 0 if there is too little memory. If `after` is set, the stream's next work must wait for that ticket.
  Address allocate(std::size_t size, const std::shared_ptr<Stream>& stream, Ticket& after);
  void free(Address start, std::size_t size);  // returns the memory to the chunk at once

  // A free has three steps: the call (leave), the entry into the stream (set_ticket), the execution (leave_now).
  std::shared_ptr<Leaving> leave(Address start, std::size_t size, const std::shared_ptr<Stream>& stream);
  void set_ticket(Leaving& leaving, const Ticket& ticket);
  void leave_now(const std::shared_ptr<Leaving>& leaving);
  bool awaits_frees();

  // Returns start and size of the chunk that contains an address.
  std::pair<Address, std::size_t> chunk_of(Address inside);
  // Frees unused chunks while the pool reserves more than `keep` bytes.
  void trim(std::size_t keep);
  void trim_to_threshold();

  CUresult attribute(CUmemPool_attribute which, void* value);
  CUresult set_attribute(CUmemPool_attribute which, const void* value);

 private:
  struct Chunk {
    std::size_t size = 0;
    std::map<Address, std::size_t> holes;  // address to size; the hole at the chunk's end includes a gap beyond it
  };
  using Chunks = std::map<Address, Chunk>;

  Address reuse(std::size_t size, const std::shared_ptr<Stream>& stream, Ticket& after) REQUIRES(mutex_);
  Address room_for(std::size_t size) REQUIRES(mutex_);
  Address room_in(Chunk& chunk, std::size_t size) REQUIRES(mutex_);
  bool add_chunk(std::size_t size) REQUIRES(mutex_);
  void put_back(Address start, std::size_t size) REQUIRES(mutex_);
  void trim_locked(std::size_t keep) REQUIRES(mutex_);

  Device& device_;
  const CUmemPoolProps properties_;

  ring::Mutex mutex_;
  Chunks chunks_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Leaving>> leaving_ GUARDED_BY(mutex_);
  std::uint64_t release_threshold_ GUARDED_BY(mutex_) = 0;
  // Reuse policies: follow event dependencies, opportunistic, internal dependencies.
  std::array<int, 3> reuse_ GUARDED_BY(mutex_){1, 1, 1};
  std::uint64_t used_ GUARDED_BY(mutex_) = 0, used_high_ GUARDED_BY(mutex_) = 0;
  std::uint64_t reserved_ GUARDED_BY(mutex_) = 0, reserved_high_ GUARDED_BY(mutex_) = 0;
};

// Creates a pool and its handle.
std::shared_ptr<MemoryPool> make_pool(Driver& driver, Device& device, const CUmemPoolProps& properties);

// Frees unused memory of all pools above their thresholds. Calls that wait on the host call this function.
void trim_pools(Driver& driver);

}  // namespace simgpu
