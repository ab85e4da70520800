// Internals of AddressSpace (host/simgpu/engine.h) for the interpreter: a snapshot of the live ranges that worker
// threads search without a lock. Private to host/simgpu.
//
// Memory order A: a writer changes the ranges and then increments `generation`, both under the mutex. A reader that
// loads the new number with acquire order and then takes a snapshot sees the change. A running kernel may use an older
// snapshot. Device pages stay mapped after a free, so a stray access of such a kernel still reaches mapped memory.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "host/simgpu/engine.h"
#include "host/simgpu/memory/chunks.h"
#include "host/simgpu/texture/texture.h"
#include "ring/base/mutex.h"

namespace simgpu {

// sorted by start and disjoint; adjacent mappings with the same rights are joined
using RangeList = std::vector<Range>;

struct AddressSpace::Impl {
  explicit Impl(std::size_t capacity);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Allocations get addresses below `address`, as NVIDIA's driver would choose them. Call this function before the
  // first allocation.
  void place_chunks_below(Address address) {
    const ring::MutexLock lock(mutex_);
    chunks_.emplace(address);
  }
  Address allocate(std::size_t size);
  bool free(Address start);
  Address claim(std::size_t size);
  void give_back_claim(Address start, std::size_t size);
  bool add(Range range);
  bool remove(Address start, RangeKind kind);
  bool remove(Address start);
  bool set_leaving(Address start, bool leaving);
  bool charge(std::size_t size);
  void discharge(std::size_t size) {
    used.fetch_sub(size, std::memory_order_relaxed);
    if (published != nullptr) published->fetch_sub(size, std::memory_order_relaxed);
  }
  std::optional<Range> find(Address inside);
  bool check(Address start, std::size_t size, bool to_write);
  std::shared_ptr<const RangeList> snapshot();

  std::size_t capacity = 0;
  std::atomic<std::size_t> used{0};
  std::atomic<std::uint64_t>* published = nullptr;  // set before the first use; may be in shared memory
  std::atomic<std::uint64_t> generation{1};
  TextureTable textures;

 private:
  void changed() REQUIRES(mutex_);
  void give_back(Address start, Address end) REQUIRES(mutex_);
  Address take(std::size_t size) REQUIRES(mutex_);
  Address take_of_chunks(std::size_t size) REQUIRES(mutex_);
  void put_back(Address start, std::size_t size) REQUIRES(mutex_);
  bool overlaps(const Range& range) const REQUIRES(mutex_);
  const Range* find_locked(Address inside) const REQUIRES(mutex_);

  Address reserved_ = 0;
  std::size_t reserved_size_ = 0;
  ring::Mutex mutex_;
  std::map<Address, Range> ranges_ GUARDED_BY(mutex_);
  std::map<Address, std::size_t> holes_ GUARDED_BY(mutex_);  // free parts of the reservation: start to size
  std::optional<Chunks> chunks_ GUARDED_BY(mutex_);          // used instead of the reservation if it has a value
  std::shared_ptr<const RangeList> snapshot_ GUARDED_BY(mutex_);
  std::uint64_t next_id_ GUARDED_BY(mutex_) = 1;
};

// Returns the range of `list` that contains `inside`, or null.
const Range* find_in(const RangeList& list, Address inside);

}  // namespace simgpu
