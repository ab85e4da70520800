// Times of entry to and return from the driver. tests/bench/parts_driver.cc writes them into pinned memory of the
// measuring program, which has the same address in guest, worker and GPU. The kernel's first parameter is that address;
// null: no stamps.
#pragma once

#include <x86intrin.h>

#include <cstdint>

namespace parts {

// Ticks of the time-stamp counter, which is synchronous on all cores.
inline std::uint64_t now() { return __rdtsc(); }

struct alignas(64) Stamps {
  std::uint64_t launch_entered, launch_left;
  std::uint64_t wait_entered, wait_left;
};

}  // namespace parts
