// The guest library's log, on standard error or in the file IVGPU_LOG_FILE. The process is the user's program, so by
// default only warnings and errors are written; IVGPU_LOG=off|error|warn|info|debug|trace changes that. One write(2) a
// line. Safe from any thread.
#pragma once

#include "ring/ops/log_level.h"

namespace guest {

using Level = ring::LogLevel;

bool logs(Level level);
// Opens IVGPU_LOG_FILE, so that the program may change its root afterwards. Else the first line opens the file.
void open_log();
[[gnu::format(printf, 2, 3)]] void log(Level level, const char* format, ...);

}  // namespace guest
