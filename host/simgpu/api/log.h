// Messages of the simulated GPU, to standard error and to callbacks of cuLogsRegisterCallback.
//
// Thread-safe.
#pragma once

#include <string>

namespace simgpu {

// Prints a line on standard error, prefixed with the simulated GPU's name.
void report(const std::string& line);

// True if IVGPU_SIM_WARN=1, which `ivgpu sim` sets: report calls that the guest library would refuse. A worker's
// environment does not have the variable.
bool warnings_wanted();

// Reports an error that its CUresult does not explain, on stderr and to callbacks. Call it before any call returns that
// CUresult, so that the program finds the text.
void log_error(const std::string& line);

}  // namespace simgpu
