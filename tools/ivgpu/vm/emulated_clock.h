// The time in a guest that is emulated (TCG). Its TSC is the host's, so it can be believed. But a guest's kernel that
// starts on a busy host cannot tell how fast it counts: one has taken 2.3 GHz for 0.85, so that its seconds were a third
// of a second long and its programs gave up a host that answered. It may also find its timer broken, and end.
#pragma once

#include <cstdint>
#include <string>

namespace ivgpu {

// How fast this machine's TSC counts, in kHz, by CLOCK_MONOTONIC_RAW over 20 ms; exact to 0.1 % on a busy machine, too.
std::uint64_t tsc_khz();

// Words of the guest's kernel's command line, parted by blanks.
std::string emulated_clock();

}  // namespace ivgpu
