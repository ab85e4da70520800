// Sets the clock of an emulated (TCG) guest. The guest's TSC is the host's, but the guest's kernel cannot calibrate the
// TSC on a busy host. One kernel measured 0.85 GHz instead of 2.3 GHz: its seconds were too short, and programs gave up
// a live host. The kernel may also find its timer broken and panic.
#pragma once

#include <cstdint>
#include <string>

namespace ivgpu {

// This machine's TSC frequency in kHz, measured against CLOCK_MONOTONIC_RAW for 20 ms; exact to 0.1 % even on a busy
// machine.
std::uint64_t tsc_khz();

// Options for the guest kernel's command line, separated by blanks.
std::string emulated_clock();

}  // namespace ivgpu
