// What one side of shared memory finds when it looks at the other's words.
#pragma once

#include <cstdint>

namespace ring {

enum class Peer : std::uint8_t {
  Ok,
  Wait,   // full for a producer, empty for a consumer, unanswered for a caller
  Broken  // a number that no honest peer writes
};

}  // namespace ring
