// Log lines of the guest library, to standard error: a stranger's process, so nothing by default but warnings and
// errors. IVGPU_LOG=error|warn|info|debug|trace (or off) says how much. One write(2) a line; safe from any thread.
#pragma once

#include "ring/log_level.h"

namespace guest {

using Level = ring::LogLevel;

bool logs(Level level);
[[gnu::format(printf, 2, 3)]] void log(Level level, const char* format, ...);

}  // namespace guest
