// The address ranges of device memory, which this process's own mappings must not use (docs/design/004-reservation.md).
// A range stays reserved, because a reservation costs nothing and the driver reuses the addresses. Any thread may call
// this class.
#pragma once

#include <cstdint>
#include <map>

#include "ring/base/mutex.h"

namespace guest {

class Reservations {
 public:
  // Reserves [start, start + bytes). Returns false if the range overlaps a mapping of this process.
  bool reserve(std::uint64_t start, std::uint64_t bytes);

 private:
  ring::Mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> ranges_ GUARDED_BY(mutex_);  // start -> end, page-aligned, disjoint
};

}  // namespace guest
