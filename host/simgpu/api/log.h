// What the simulated GPU says: on standard error, and to whoever asked for it with cuLogsRegisterCallback.
//
// Any thread may call these.
#pragma once

#include <string>

namespace simgpu {

// One line on standard error, with the simulated GPU's name before it.
void say(const std::string& line);

// An error that a program must be told more of than its CUresult: said, and given to every registered callback. Call it
// before any call can return that CUresult, so that whoever gets it finds the words there.
void log_error(const std::string& line);

}  // namespace simgpu
