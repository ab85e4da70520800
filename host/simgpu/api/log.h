// Messages of the simulated GPU, to standard error and to callbacks of cuLogsRegisterCallback.
//
// Thread-safe.
#pragma once

#include <string>

namespace simgpu {

// Prints a line on standard error, prefixed with the simulated GPU's name.
void report(const std::string& line);

// Returns true if IVGPU_SIM_WARN=1, which `ivgpu sim` sets so that calls that the guest library would refuse are
// reported. The environment of a worker does not contain this variable.
bool warnings_wanted();

// Reports an error that its CUresult does not explain, on stderr and to callbacks. Report the error before a call
// returns that CUresult, so that the program can read the text.
void log_error(const std::string& line);

}  // namespace simgpu
