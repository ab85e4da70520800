// Sets the clock of an emulated (TCG) guest. Its TSC is the host's, but its kernel cannot calibrate the TSC on a busy
// host. One kernel measured 0.85 GHz instead of 2.3, so its seconds were too short and programs gave up a live host.
// The kernel may also find its timer broken and panic.
#pragma once

#include <cstdint>
#include <string>

namespace ivgpu {

// This machine's TSC in kHz, by CLOCK_MONOTONIC_RAW over 20 ms; exact to 0.1 % even on a busy machine.
std::uint64_t tsc_khz();

// Options for the guest kernel's command line, separated by blanks.
std::string emulated_clock();

}  // namespace ivgpu
