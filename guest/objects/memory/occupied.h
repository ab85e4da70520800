// The guest reports its mappings to the worker when new device memory collides with one of them. The worker then keeps
// the driver from using these addresses (docs/design/004-reservation.md).
//
// Trust: the list of this process's mappings comes from the kernel. Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ring/base/mutex.h"

namespace guest {

struct Stretch {
  std::uint64_t start, end;
};

// Returns the mappings that overlap `what`, together with neighbouring mappings if the gaps between them are too small
// for the driver's unit of reservation. `maps`: a file like /proc/self/maps, read from its current offset. Empty if no
// mapping overlaps `what`.
Stretch mappings_around(int maps, Stretch what);

class Occupied {
 public:
  // Returns the range to report for a collision at [start, start + bytes): whole huge pages, up to a record's limit.
  // Returns nothing if the range was reported before, or if the limit of ranges is reached.
  std::optional<Stretch> around(std::uint64_t start, std::uint64_t bytes);

 private:
  bool is_reported(const Stretch& what) const REQUIRES(mutex_);

  ring::Mutex mutex_;
  std::vector<Stretch> reported_ GUARDED_BY(mutex_);
};

}  // namespace guest
