// Messages between the scheduler and its helper (ivgpu-gputime), over a socket that keeps message boundaries. Both
// belong to the broker and trust each other; a wrong length ends the connection.
//
// The helper first sends a Hello. Then it answers each Switch by one Switched, in order. A Switch without channels has
// no answer; it only proves that the broker lives. If the helper receives nothing for `longest_silence_ms` while a
// channel is disabled, it enables everything and sends a Switched with `everything`. When the connection ends it does
// the same and exits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/layout/layout.h"

namespace host::scheduler {

inline constexpr std::uint32_t protocol_version = 1;

struct HelperGpu {
  std::int64_t refused;    // 0: the helper can switch this GPU's channels; else the driver's status or a negative errno
  std::uint32_t instance;  // the driver's number of the GPU
  std::uint32_t unused;
};
struct Hello {
  std::uint32_t version, gpus;
  HelperGpu gpu[ring::max_devices];  // in the order of the helper's arguments
};

struct SwitchedChannel {
  std::uint32_t client, channel;  // the driver's handles
  std::uint32_t serial;           // distinguishes channels of the client that reuse a handle
};
struct Switch {
  std::uint32_t gpu;      // index among the helper's arguments
  std::uint32_t on, off;  // numbers of channels that follow: first those to enable, then those to disable
  std::uint32_t longest_silence_ms;
  std::uint32_t forced;  // 1: enable the `on` channels even if an earlier helper may have disabled them
};
inline constexpr std::size_t most_channels = 4096;  // per message; an order may take several messages
inline constexpr std::uint32_t everything = ~std::uint32_t{0};
struct Switched {
  std::uint32_t gpu;
  std::uint32_t failed;  // channels that the driver refused to switch, as when they have ended; or `everything`
  std::int64_t refused;  // status of the last refusal
  std::uint64_t took_ns;
};

}  // namespace host::scheduler
