// The guest reports its mappings to the worker when new device memory collides with one. The worker then keeps the
// driver from those addresses (docs/design/004-reservation.md).
//
// Trust: the kernel's list of this process's mappings. Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ring/base/mutex.h"

namespace guest {

struct Stretch {
  std::uint64_t start, end;
};

// The mappings that overlap `what`, and adjacent ones with gaps too small for a chunk of the driver's. `maps`: a file
// like /proc/self/maps, read from its current offset. Empty: no mapping overlaps `what`.
Stretch mappings_around(int maps, Stretch what);

class Occupied {
 public:
  // The range to report for a collision at [start, start + bytes): whole huge pages, up to a record's limit. Nothing:
  // it was reported before, or the limit of ranges is reached.
  std::optional<Stretch> around(std::uint64_t start, std::uint64_t bytes);

 private:
  bool is_reported(const Stretch& what) const REQUIRES(mutex_);

  ring::Mutex mutex_;
  std::vector<Stretch> reported_ GUARDED_BY(mutex_);
};

}  // namespace guest
