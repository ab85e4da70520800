// What the program has said about its managed memory: advice, and where it was prefetched to. Nothing follows from it,
// since host and GPU share the memory where it lies; it is kept for cuMemRangeGetAttribute.
//
// Any thread may call it. Ranges are taken in whole pages. What is kept is a line of steps: each holds from its page up
// to the next step. So its size is bounded by the pages of the arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "ring/api/cuda.h"

namespace guest {

struct Advice {
  static constexpr std::uint64_t host = 1ULL << 63;

  bool read_mostly = false;
  CUmemLocation preferred{CU_MEM_LOCATION_TYPE_INVALID, 0}, prefetched{CU_MEM_LOCATION_TYPE_INVALID, 0};
  std::uint64_t accessed_by = 0;  // a bit for each device's ordinal, and `host`
};

class ManagedRanges {
 public:
  void change(std::uint64_t start, std::uint64_t bytes, const std::function<void(Advice&)>& change);
  // Forgets what was said of memory that is given out anew.
  void forget(std::uint64_t start, std::uint64_t bytes);
  // That of each part of the range, in order. Not empty. Preconditions: `bytes` is not 0.
  std::vector<Advice> of(std::uint64_t start, std::uint64_t bytes) const;

 private:
  using Steps = std::map<std::uint64_t, Advice>;
  Steps::iterator step_at(std::uint64_t page);  // makes one that begins there

  mutable std::mutex mutex_;
  Steps steps_{{0, {}}};
};

}  // namespace guest
