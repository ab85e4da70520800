// The address ranges that the program has reserved (cuMemAddressReserve), and what becomes of them. What is mapped there stands in the
// map of addresses (guest/objects/memory/addresses.h), piece by piece.
//
// Any thread may call it. Reserved ranges do not overlap, and end with no context.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "guest/objects/memory/addresses.h"
#include "ring/api/arg.h"

namespace guest {

struct VirtualRange {
  std::uint64_t start = 0, bytes = 0;
  std::uint32_t number = 0;  // no other reservation of the process has it
};

class VirtualRanges {
 public:
  VirtualRanges(Addresses& mapped, std::atomic<std::uint64_t>& next_id) : mapped_(mapped), next_id_(next_id) {}

  void add(std::uint64_t start, std::uint64_t bytes);
  // Whether one reservation has all of [start, start + bytes).
  bool holds(std::uint64_t start, std::uint64_t bytes) const;
  std::optional<VirtualRange> find(std::uint64_t inside) const;
  // A call has made this of [start, start + bytes). Preconditions: one reservation holds it. `object`: the memory object,
  // if it was mapped there, and `device` where it lies. Returns the objects of mappings that have ended, one for each.
  std::vector<std::uint64_t> settle(api::Range range, std::uint64_t start, std::uint64_t bytes,
                                    std::uint64_t object = 0, std::uint32_t device = 0);

 private:
  std::map<std::uint64_t, VirtualRange>::const_iterator holder_of(std::uint64_t inside) const;

  Addresses& mapped_;
  std::atomic<std::uint64_t>& next_id_;  // of buffers
  mutable std::mutex mutex_;
  std::map<std::uint64_t, VirtualRange> ranges_;  // by start
  std::uint32_t next_number_ = 1;
};

}  // namespace guest
