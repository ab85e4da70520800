// Measures how fast the guest reads the region, and judges the mapping by that. A slow read proves little: the machine
// may be busy, and an emulated processor has no caches.
#pragma once

#include <cstddef>

#include "guest/region/cache_probe.h"
#include "tools/check/machine.h"

namespace check {

struct CacheTimes {
  double bar_ns = 0;  // nanoseconds per load from BAR2
  double own_ns = 0;  // nanoseconds per load from ordinary memory
};

// Compares loads from [bar, bar + ring::page) with loads from this process's memory. Repeats a slow measurement up to
// `rounds` times, with a pause before each. The caller supplies the clock.
CacheTimes measure_cache(const std::byte* bar, guest::Nanoseconds clock, int rounds = 3);

// True if QEMU emulates the processor (TCG).
bool is_emulated(const Machine& machine);

// `emulated` and `amd` describe the processor.
Finding judge_cache(const CacheTimes& times, bool emulated, bool amd);

Finding check_cache(const Machine& machine, const std::byte* bar);

}  // namespace check
