// The layer that limits the files that the worker may open. A file that is not named here is refused, to any user. It
// binds the calling thread and the threads it starts later, so it is applied before the driver library is loaded.
#pragma once

#include <string>
#include <vector>

#include "host/jail/layer.h"

namespace host::jail {

struct LandlockPaths {
  std::vector<std::string> read;   // files or folders, beside the system's own
  std::vector<std::string> write;  // the same, for a sharing daemon's pipes; empty but under MPS
  // The device files that may be opened and controlled; empty: all of NVIDIA's that there are.
  std::vector<std::string> devices = {};
};

// Reads: the system's library folders, three names of /etc, /proc, /sys, `read`. Writes: `devices`, /dev/null, the
// threads' own names below /proc/self/task, `write`. Executes nothing, makes nothing, removes nothing, connects to
// nothing.
Result apply_landlock(const LandlockPaths& paths);

}  // namespace host::jail
