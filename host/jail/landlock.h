// The layer that limits which files the worker may open. Landlock refuses unlisted files to any user. The layer binds
// the calling thread and threads that it starts later, so it is applied before the driver library is loaded.
#pragma once

#include <string>
#include <vector>

#include "host/jail/layer.h"

namespace host::jail {

struct LandlockPaths {
  std::vector<std::string> read;   // files or folders, in addition to the system's
  std::vector<std::string> write;  // files or folders of a sharing daemon's pipes; empty except with MPS
  // The device files that may be opened and controlled; empty: all device files of NVIDIA's.
  std::vector<std::string> devices = {};
};

// Allows reading the system's library folders, three names in /etc, /proc, /sys and `read`. Allows writing `devices`,
// /dev/null, the threads' own names below /proc/self/task and `write`. Allows no execution, creation, removal or
// connection.
Result apply_landlock(const LandlockPaths& paths);

}  // namespace host::jail
