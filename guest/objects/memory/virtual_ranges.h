// The address ranges that the program has reserved (cuMemAddressReserve), and their mappings. The map of addresses
// (guest/objects/memory/addresses.h) contains each mapped section.
//
// Any thread may call this class. Reserved ranges do not overlap. A reserved range does not end with any context.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "guest/objects/memory/addresses.h"
#include "ring/api/arg.h"
#include "ring/base/mutex.h"

namespace guest {

struct VirtualRange {
  std::uint64_t start = 0, bytes = 0;
  std::uint32_t number = 0;  // unique among the process's reservations
};

class VirtualRanges {
 public:
  VirtualRanges(Addresses& mapped, std::atomic<std::uint64_t>& next_id) : mapped_(mapped), next_id_(next_id) {}

  void add(std::uint64_t start, std::uint64_t bytes);
  // Returns whether one reservation contains all of [start, start + bytes).
  bool holds(std::uint64_t start, std::uint64_t bytes) const;
  std::optional<VirtualRange> find(std::uint64_t inside) const;
  // Records the result of a call on [start, start + bytes). Preconditions: one reservation contains the range.
  // `object`: the memory object that was mapped at the range, on `device`. Returns the memory objects of the mappings
  // that ended, one object for each mapping.
  std::vector<std::uint64_t> commit(api::Range range, std::uint64_t start, std::uint64_t bytes,
                                    std::uint64_t object = 0, std::uint32_t device = 0);

 private:
  std::map<std::uint64_t, VirtualRange>::const_iterator holder_of(std::uint64_t inside) const REQUIRES(mutex_);

  Addresses& mapped_;
  std::atomic<std::uint64_t>& next_id_;  // the next buffer id
  mutable ring::Mutex mutex_;
  std::map<std::uint64_t, VirtualRange> ranges_ GUARDED_BY(mutex_);  // keyed by start
  std::uint32_t next_number_ GUARDED_BY(mutex_) = 1;
};

}  // namespace guest
