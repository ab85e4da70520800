// The options of serve() (host/untrusted/serve.h), from the worker's checked command line.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "host/session/gpu_use.h"
#include "host/session/memory/device_memory.h"
#include "ring/layout/layout.h"

namespace host {

class Session;

inline constexpr std::uint32_t all_windows = (1u << ring::window_count) - 1;

struct ServeOptions {
  std::uint32_t spin_us = 50;        // how long a channel polls before it parks; 0: no polling
  std::uint32_t chaos_delay_us = 0;  // for tests: upper bound of a random delay before each record
  bool waits_asleep = false;         // threads that wait in the driver sleep instead of spinning behind a long kernel
  std::uint32_t wait_spin_ms = 20;   // how long threads of all channels but one may spin in the driver; 0: no limit
  std::uint32_t channels = ring::max_channels;
  std::uint64_t image_bytes = std::uint64_t{2} << 30;  // limit of images' bytes, including images that are being loaded
  // Making kept graphs may use one part in so many of a channel's time; 0: no limit, for tests.
  int graph_time_part = 20;
  std::uint64_t objects = 262144;      // limit of the number of objects and memory ranges
  std::byte* telemetry = nullptr;      // mapped memory of ring::telemetry_bytes; null: no process reads the telemetry
  GpuUsePages gpu_use{};               // without pages, the worker is not scheduled
  bool borrows = false;                // the session reserves device memory from the broker, through the control socket
  std::uint64_t context_bytes = 0;     // device memory that a context takes
  MemoryReserver* reserver = nullptr;  // set by serve() if `borrows`, or by a test
  std::uint32_t windows = 0;           // one bit for each arena window that the process has reserved
  int interrupt_fd = -1;               // an eventfd that interrupts the guest; -1: none
  int life_fd = -1;                    // life_fd and the next two members are arguments of the worker's LivenessPipe
  std::chrono::milliseconds outlive{0};
  bool doorbell_by_broker = false;
  bool join_at_end = false;             // for tests: join the channels' threads instead of ending the process
  void (*serving)(Session&) = nullptr;  // for tests: called before the first record
};

}  // namespace host
