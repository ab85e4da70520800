// Where this process has mappings, told to the worker when new device memory collides with one, so that the driver places
// no more there (docs/design/004-reservation.md).
//
// Trust: the kernel's list of this process's mappings is believed. Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace guest {

struct Stretch {
  std::uint64_t start, end;
};

// The mappings at `what`, and those beside them as far as no chunk of the driver's fits in between. `maps` is a file as
// /proc/self/maps, read from where it stands. Empty: none of these is at `what`.
Stretch mappings_around(int maps, Stretch what);

class Occupied {
 public:
  // What to tell the worker of a collision at [start, start + bytes): whole huge pages, as many as a record may name.
  // Nothing: all of it was told before, or enough.
  std::optional<Stretch> around(std::uint64_t start, std::uint64_t bytes);

 private:
  bool is_told(const Stretch& what) const;  // the mutex is held

  std::mutex mutex_;
  std::vector<Stretch> told_;
};

}  // namespace guest
