// A pool for allocation and free in stream order. It holds chunks of device memory and allocations in them.
//
// A freed allocation is unknown to host calls at once, but work in flight may use it until the free executes in its
// stream. Before that, the pool may reuse it for an allocation of the same size, whose users run after the free.
// Afterwards its space returns to the chunk.
//
// Thread-safe. The pool's lock is held only within a call.
#pragma once

#include "host/simgpu/api/objects.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace simgpu {

class Driver;

// A freed allocation whose free has not executed yet.
struct Leaving {
  Address start = 0;
  std::size_t size = 0;
  std::shared_ptr<Stream> stream;
  Ticket ticket;       // of the free; null until it enters the stream
  bool taken = false;  // reused as a new allocation
  bool over = false;   // the free has executed
};

class MemoryPool {
 public:
  MemoryPool(Device& device, const CUmemPoolProps& properties) : device_(device), properties_(properties) {}
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  CUmemoryPool handle = nullptr;             // set once, before the pool is published
  bool is_default = false;                   // set once, like handle
  std::atomic<bool> given_to_device{false};  // for host memory: a device may access it

  Device& device() const { return device_; }
  const CUmemPoolProps& properties() const { return properties_; }
  bool managed() const { return properties_.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED; }
  bool on_host() const { return !managed() && properties_.location.type != CU_MEM_LOCATION_TYPE_DEVICE; }
  // True if device commands may use its memory.
  bool is_reached() const { return !on_host() || given_to_device.load(std::memory_order_relaxed); }

  // Returns 0 if there is not enough. If `after` is set, the stream's next work must wait for it.
  Address allocate(std::size_t size, const std::shared_ptr<Stream>& stream, Ticket& after);
  void free(Address start, std::size_t size);  // immediately

  // A free in three steps: the call, its entry into the stream, its execution.
  std::shared_ptr<Leaving> leave(Address start, std::size_t size, const std::shared_ptr<Stream>& stream);
  void set_ticket(Leaving& leaving, const Ticket& ticket);
  void leave_now(const std::shared_ptr<Leaving>& leaving);
  bool awaits_frees();

  // Start and size of the chunk that holds an address.
  std::pair<Address, std::size_t> chunk_of(Address inside);
  // Frees unused chunks while the pool holds more than `keep` bytes.
  void trim(std::size_t keep);
  void trim_to_threshold();

  CUresult attribute(CUmemPool_attribute which, void* value);
  CUresult set_attribute(CUmemPool_attribute which, const void* value);

 private:
  struct Chunk {
    std::size_t size = 0;
    std::map<Address, std::size_t> holes;  // the last hole extends past the chunk by a gap
  };
  using Chunks = std::map<Address, Chunk>;

  // Require the lock.
  Address reuse(std::size_t size, const std::shared_ptr<Stream>& stream, Ticket& after);
  Address room_for(std::size_t size);
  Address room_in(Chunk& chunk, std::size_t size);
  bool add_chunk(std::size_t size);
  void put_back(Address start, std::size_t size);
  void trim_locked(std::size_t keep);

  Device& device_;
  const CUmemPoolProps properties_;

  std::mutex mutex_;  // for the members below
  Chunks chunks_;
  std::vector<std::shared_ptr<Leaving>> leaving_;
  std::uint64_t release_threshold_ = 0;
  // Flags: follow event dependencies, opportunistic, internal dependencies.
  std::array<int, 3> reuse_{1, 1, 1};
  std::uint64_t used_ = 0, used_high_ = 0, reserved_ = 0, reserved_high_ = 0;
};

// Makes a pool and its handle.
std::shared_ptr<MemoryPool> make_pool(Driver& driver, Device& device, const CUmemPoolProps& properties);

// Host waits call this: pools free memory above their thresholds.
void trim_pools(Driver& driver);

}  // namespace simgpu
