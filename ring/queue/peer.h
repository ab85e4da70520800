// The result of checking words in shared memory that the other side writes.
//
// ```cpp
// bool must_end_session(ring::Peer found) { return found == ring::Peer::Broken; }
// ```
#pragma once

#include <cstdint>

namespace ring {

enum class Peer : std::uint8_t {
  Ok,
  Wait,   // a producer finds the ring full, a consumer finds it empty, a caller has no answer yet
  Broken  // a number that no honest peer writes
};

}  // namespace ring
