// When the driver behind a worker was entered and left, written by tests/bench/parts_driver.cc into pinned memory of
// the program that measures: guest, worker and GPU have the same address for it. The first parameter of the kernel says
// where; null: no stamps.
#pragma once

#include <x86intrin.h>

#include <cstdint>

namespace parts {

// Ticks of the processor's time-stamp counter, which runs alike on all of its cores.
inline std::uint64_t now() { return __rdtsc(); }

struct alignas(64) Stamps {
  std::uint64_t launch_entered, launch_left;
  std::uint64_t wait_entered, wait_left;
};

}  // namespace parts
