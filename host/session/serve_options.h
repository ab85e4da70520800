// What serve() (host/untrusted/serve.h) is told: a worker's options for its session, checked by the worker's command line.
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
  std::uint32_t spin_us = 50;        // how long a channel polls before it parks; 0: park at once
  std::uint32_t chaos_delay_us = 0;  // test switch: up to this many microseconds of random delay before each record
  bool waits_asleep = false;         // threads also sleep in the driver, where they would spin behind a long kernel
  std::uint32_t wait_spin_ms = 20;   // how long all channels but one may spin there; 0: without bound
  std::uint32_t channels = ring::max_channels;
  std::uint64_t image_bytes = std::uint64_t{2} << 30;  // bound on the bytes of images, those being loaded included
  std::uint64_t objects = 262144;                      // bound on the number of objects and memory ranges
  std::byte* telemetry = nullptr;                      // mapped, ring::telemetry_bytes long; null: nobody reads it
  GpuUsePages gpu_use{};                               // no pages: nobody schedules it
  bool borrows = false;                                // device memory, from the broker, by the control socket
  std::uint64_t context_bytes = 0;                     // what a context of a device takes of its memory
  Lender* lender = nullptr;                            // serve() sets it where it borrows; tests: their own
  std::uint32_t windows = 0;                           // a bit for each arena window that the process has reserved
  int interrupt_fd = -1;                               // an eventfd that interrupts the guest; -1: nothing does
  int life_fd = -1;                                    // with the next two: of the worker's LifeLine
  std::chrono::milliseconds outlive{0};
  bool rung_by_broker = false;
  bool join_at_end = false;             // tests: wait for the channels' threads instead of ending the process
  void (*serving)(Session&) = nullptr;  // tests: called before the first record; the session lasts as long as serve()
};

}  // namespace host
