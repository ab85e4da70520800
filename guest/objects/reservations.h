// Address ranges that device memory takes, kept out of this process's own mappings (docs/design/004-reservation.md).
// Once taken, a range stays taken: it costs nothing, and the driver gives the same addresses again. Any thread may call
// it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace guest {

class Reservations {
 public:
  // False: something of this process lies there.
  bool reserve(std::uint64_t start, std::uint64_t bytes);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> ranges_;  // start -> end, page-aligned, disjoint
};

}  // namespace guest
