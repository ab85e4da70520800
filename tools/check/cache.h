// The speed at which the guest reaches the region, and its meaning for the mapping: less than one might think, since a
// busy machine is slow as well, and an emulated processor has no caches.
#pragma once

#include <cstddef>

#include "guest/region/cache_probe.h"
#include "tools/check/machine.h"

namespace check {

struct CacheTimes {
  double bar_ns = 0;  // for a line of BAR2
  double own_ns = 0;  // for one of ordinary memory
};

// [bar, bar + ring::page) against memory of this process. A mapping that seems slow is measured again, up to `rounds`
// times, with a pause before. The clock comes from the caller.
CacheTimes measure_cache(const std::byte* bar, guest::Nanoseconds clock, int rounds = 3);

// True if QEMU emulates the processor (TCG).
bool is_emulated(const Machine& machine);

// `emulated`, `amd`: the processor's.
Finding judge_cache(const CacheTimes& times, bool emulated, bool amd);

Finding check_cache(const Machine& machine, const std::byte* bar);

}  // namespace check
