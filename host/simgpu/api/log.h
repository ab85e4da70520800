// The messages of the simulated GPU: to standard error, and to callbacks registered with cuLogsRegisterCallback.
//
// Any thread may call these.
#pragma once

#include <string>

namespace simgpu {

// One line on standard error, with the simulated GPU's name before it.
void say(const std::string& line);

// True if a program is to hear of the calls that it makes in vain elsewhere: IVGPU_SIM_WARN=1, as `ivgpu sim` sets it. Not
// in a worker, whose calls are its own: it has no such variable in its environment.
bool warnings_wanted();

// Reports an error that needs more words than its CUresult: on standard error, and to every registered callback. Call
// it before any call can return that CUresult, so that a program which gets it finds the words there.
void log_error(const std::string& line);

}  // namespace simgpu
