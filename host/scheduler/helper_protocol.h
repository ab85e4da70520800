// What the scheduler and its helper (ivgpu-gputime) say to each other, over a socket that keeps message boundaries. Both are
// the broker's and believe each other; a length that does not fit ends the connection.
//
// The helper begins with a Hello. After that each Switch is answered by one Switched, in their order, but for one without
// channels, which only ends a silence. Where the helper hears nothing for `longest_silence_ms` while something is off, it
// switches everything on and sends a Switched of `everything`; where the connection ends it does the same and ends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/layout/layout.h"

namespace host::scheduler {

inline constexpr std::uint32_t protocol_version = 1;

struct HelperGpu {
  std::int64_t refused;  // 0: the helper can switch channels of this GPU; else the driver's status or a negative errno
  std::uint32_t instance;  // the driver's number of the GPU
  std::uint32_t unused;
};
struct Hello {
  std::uint32_t version, gpus;
  HelperGpu gpu[ring::max_devices];  // in the order of the helper's arguments
};

struct SwitchedChannel {
  std::uint32_t client, channel;  // the driver's handles
  std::uint32_t serial;           // of the client's: a handle may be used again for another channel
};
struct Switch {
  std::uint32_t gpu;      // place among the helper's arguments
  std::uint32_t on, off;  // so many channels of each follow: first those that go on
  std::uint32_t longest_silence_ms;
  std::uint32_t
      forced;  // 1: switch those of `on` on although this helper has not switched them off; another one may have
};
inline constexpr std::size_t most_channels = 4096;  // of one message; an order may take more messages
inline constexpr std::uint32_t everything = ~std::uint32_t{0};
struct Switched {
  std::uint32_t gpu;
  std::uint32_t
      failed;  // channels that the driver has refused to switch, as it does where they have ended; or everything
  std::int64_t refused;  // the last such status
  std::uint64_t took_ns;
};

}  // namespace host::scheduler
