// The address ranges that a guest process has reserved (cuMemAddressReserve). The map of addresses contains the mapped
// pieces of these ranges (host/session/memory/addresses.h).
//
// Arguments must be checked values, or come from the driver. Invariants: ranges do not overlap, since the driver never
// returns an address twice. While no call holds changing(), the map of addresses equals the driver's mappings. A range
// does not end with any context. Any thread may call this class.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "host/session/memory/addresses.h"
#include "ring/api/arg.h"
#include "ring/base/mutex.h"
#include "ring/verify/mutants.h"

namespace host {

class VirtualRanges {
 public:
  explicit VirtualRanges(Addresses& mapped) : mapped_(mapped) {}

  // A call that reserves, maps, unmaps or ends a range holds this lock from its check until its commit. Otherwise the
  // session could commit two calls in a different order than the driver executes them
  // (docs/design/045-addresses-that-are-gone.md). The driver may wait for the GPU meanwhile, so other calls do not take
  // this lock. clang does not follow this lock, since a function returns it.
  [[nodiscard]] std::unique_lock<ring::Mutex> changing() {
    if (ring::wrong(ring::Mutant::mapping_unlocked)) return {};
    return std::unique_lock(changes_);
  }
  void add(std::uint64_t start, std::uint64_t bytes);
  // Returns whether one reservation contains all of [start, start + bytes).
  bool holds(std::uint64_t start, std::uint64_t bytes) const;
  // Commits the effect of a call on [start, start + bytes). Preconditions: the call holds changing(), and one
  // reservation contains the range. `object`: the id of a newly mapped memory object. Returns the memory object of each
  // mapping that has ended.
  std::vector<std::uint64_t> commit(api::Range range, std::uint64_t start, std::uint64_t bytes,
                                    std::uint64_t object = 0);
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Reservation {
    std::uint64_t bytes = 0;
    std::uint32_t number = 0;
  };
  std::map<std::uint64_t, Reservation>::const_iterator holder_of(std::uint64_t start, std::uint64_t bytes) const
      REQUIRES(mutex_);

  Addresses& mapped_;
  ring::Mutex changes_ ACQUIRED_BEFORE(mutex_);
  mutable ring::Mutex mutex_;
  std::map<std::uint64_t, Reservation> ranges_ GUARDED_BY(mutex_);  // keyed by start
  std::uint32_t next_number_ GUARDED_BY(mutex_) = 1;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace host
