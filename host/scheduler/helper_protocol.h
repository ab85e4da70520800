// Messages between the scheduler and its helper (ivgpu-gputime), over a socket that keeps message boundaries. Both
// belong to the broker and trust each other; a wrong length ends the connection.
//
// The helper first sends a Hello. Then the helper answers each Switch by one Switched, in order. A Switch without
// channels has no answer; it only proves that the broker is alive. If the helper receives nothing for
// `longest_silence_ms` while a channel is disabled, the helper enables all channels and sends a Switched with
// `everything`. When the connection ends, the helper enables all channels and exits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/layout/layout.h"

namespace host::scheduler {

inline constexpr std::uint32_t protocol_version = 1;

struct HelperGpu {
  // 0: the helper can switch this GPU's channels; otherwise the driver's status or a negative errno
  std::int64_t refused;
  std::uint32_t instance;  // the driver's number of the GPU
  std::uint32_t unused;
};
struct Hello {
  std::uint32_t version, gpus;
  HelperGpu gpu[ring::max_devices];  // the GPUs have the order of the helper's arguments
};

struct SwitchedChannel {
  std::uint32_t client, channel;  // the driver's handles
  std::uint32_t serial;           // distinguishes channels of the client that have used the same handle
};
struct Switch {
  std::uint32_t gpu;  // index among the helper's arguments
  // The number of channels that follow: first the channels to enable, then the channels to disable.
  std::uint32_t on, off;
  std::uint32_t longest_silence_ms;
  std::uint32_t forced;  // 1: enable the `on` channels even if an earlier helper may have disabled them
};
inline constexpr std::size_t most_channels = 4096;  // in one message; an order may need several messages
inline constexpr std::uint32_t everything = ~std::uint32_t{0};
struct Switched {
  std::uint32_t gpu;
  // The number of channels that the driver refused to switch, for example because they have ended; or `everything`.
  std::uint32_t failed;
  std::int64_t refused;  // status of the last refusal
  std::uint64_t took_ns;
};

}  // namespace host::scheduler
