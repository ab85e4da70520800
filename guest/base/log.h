// The guest library's log, on standard error or in the file IVGPU_LOG_FILE. The process is the user's program, so by
// default the log has only warnings and errors; IVGPU_LOG=off|error|warn|info|debug|trace changes the level. Each line
// is one write(2). Safe from any thread.
#pragma once

#include "ring/ops/log_level.h"

namespace guest {

using Level = ring::LogLevel;

Level chosen_level();
// Returns whether the log has lines of this level. Reads the environment at the first call only.
inline bool logs(Level level) {
  static const Level limit = chosen_level();
  return level <= limit;
}
// Opens IVGPU_LOG_FILE, so that the program may change its root afterwards. Without this call, the first line opens the
// file.
void open_log();
[[gnu::format(printf, 2, 3)]] void log(Level level, const char* format, ...);

}  // namespace guest
