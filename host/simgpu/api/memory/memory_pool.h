// A pool of memory that is allocated and freed in the order of streams: chunks of its device's memory, and allocations in
// them.
//
// An allocation that is freed is unknown to calls of the host at once, but work in flight reaches it until the free's turn
// in its stream has come. Before that turn it may become an allocation of the same size again, whose users come after the
// free; after it, its room belongs to the chunk.
//
// Threads: any. The pool's lock is held for no longer than a call here takes.
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

// An allocation that was freed, until the free's turn has come.
struct Leaving {
  Address start = 0;
  std::size_t size = 0;
  std::shared_ptr<Stream> stream;
  Ticket ticket;       // of the free; null until it is in the stream
  bool taken = false;  // it is an allocation again
  bool over = false;   // its turn has come
};

class MemoryPool {
 public:
  MemoryPool(Device& device, const CUmemPoolProps& properties) : device_(device), properties_(properties) {}
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  CUmemoryPool handle = nullptr;             // set once, before the pool is seen
  bool is_default = false;                   // the same
  std::atomic<bool> given_to_device{false};  // of the host's memory: a device may touch it

  Device& device() const { return device_; }
  const CUmemPoolProps& properties() const { return properties_; }
  bool managed() const { return properties_.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED; }
  bool on_host() const { return !managed() && properties_.location.type != CU_MEM_LOCATION_TYPE_DEVICE; }
  // Whether commands of the device may name its memory.
  bool is_reached() const { return !on_host() || given_to_device.load(std::memory_order_relaxed); }

  // 0 when there is not enough. The stream's next work must come after `after`, if that is not null.
  Address allocate(std::size_t size, const std::shared_ptr<Stream>& stream, Ticket& after);
  void free(Address start, std::size_t size);  // at once

  // A free in three steps: the call; the free is in its stream; its turn has come.
  std::shared_ptr<Leaving> leave(Address start, std::size_t size, const std::shared_ptr<Stream>& stream);
  void set_ticket(Leaving& leaving, const Ticket& ticket);
  void leave_now(const std::shared_ptr<Leaving>& leaving);
  bool awaits_frees();

  // Start and size of the chunk that holds an address.
  std::pair<Address, std::size_t> chunk_of(Address inside);
  // Gives unused chunks back while more than `keep` bytes are held.
  void trim(std::size_t keep);
  void trim_to_threshold();

  CUresult attribute(CUmemPool_attribute which, void* value);
  CUresult set_attribute(CUmemPool_attribute which, const void* value);

 private:
  struct Chunk {
    std::size_t size = 0;
    std::map<Address, std::size_t> holes;  // the one at the end reaches beyond the chunk by a gap
  };
  using Chunks = std::map<Address, Chunk>;

  // The lock is held in these.
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
  // Followed event dependencies, opportunism, internal dependencies.
  std::array<int, 3> reuse_{1, 1, 1};
  std::uint64_t used_ = 0, used_high_ = 0, reserved_ = 0, reserved_high_ = 0;
};

// A new pool with its handle.
std::shared_ptr<MemoryPool> make_pool(Driver& driver, Device& device, const CUmemPoolProps& properties);

// What a wait of the host does beside waiting: pools give back what is above their thresholds.
void trim_pools(Driver& driver);

}  // namespace simgpu
