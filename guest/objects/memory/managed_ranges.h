// The program's advice about its managed memory, and the locations to which the program prefetched that memory. Only
// cuMemRangeGetAttribute uses this data, since host and GPU share the memory in place.
//
// Any thread may call this class. Ranges are whole pages, stored as sorted steps: a step applies from its page to the
// next step. The arena's pages bound the number of steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "ring/api/cuda.h"
#include "ring/base/mutex.h"

namespace guest {

struct Advice {
  static constexpr std::uint64_t host = 1ULL << 63;

  bool read_mostly = false;
  CUmemLocation preferred{CU_MEM_LOCATION_TYPE_INVALID, 0}, prefetched{CU_MEM_LOCATION_TYPE_INVALID, 0};
  std::uint64_t accessed_by = 0;  // a bit for each device's ordinal, and the bit `host`
};

class ManagedRanges {
 public:
  void change(std::uint64_t start, std::uint64_t bytes, const std::function<void(Advice&)>& change);
  // Forgets the advice about memory that is allocated anew.
  void forget(std::uint64_t start, std::uint64_t bytes);
  // Returns the advice for each section of the range, in order; never an empty list. Preconditions: `bytes` is not 0.
  std::vector<Advice> of(std::uint64_t start, std::uint64_t bytes) const;

 private:
  using Steps = std::map<std::uint64_t, Advice>;
  Steps::iterator step_at(std::uint64_t page) REQUIRES(mutex_);  // makes a step that begins at `page`

  mutable ring::Mutex mutex_;
  Steps steps_ GUARDED_BY(mutex_){{0, {}}};
};

}  // namespace guest
