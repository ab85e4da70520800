// The result of checking the other side's words in shared memory.
//
// ```cpp
// bool must_end_session(ring::Peer found) { return found == ring::Peer::Broken; }
// ```
#pragma once

#include <cstdint>

namespace ring {

enum class Peer : std::uint8_t {
  Ok,
  Wait,   // full for a producer, empty for a consumer, unanswered for a caller
  Broken  // a number that no honest peer writes
};

}  // namespace ring
