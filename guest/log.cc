#include "guest/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace guest {
namespace {

Level chosen() {
  const char* value = std::getenv("IVGPU_LOG");
  const std::string_view said = value != nullptr ? value : "warn";
  if (said == "off") return Level::Off;
  if (said == "error") return Level::Error;
  if (said == "info") return Level::Info;
  if (said == "debug") return Level::Debug;
  if (said == "trace") return Level::Trace;
  return Level::Warn;
}

// IVGPU_LOG_FILE, where it can be opened, else standard error. Never closed: the last lines come at the process's end.
int destination() {
  const char* path = std::getenv("IVGPU_LOG_FILE");
  const int fd =
      path != nullptr && *path != '\0' ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : STDERR_FILENO;
  return fd >= 0 ? fd : STDERR_FILENO;
}

}  // namespace

bool logs(Level level) {
  static const Level limit = chosen();
  return level <= limit;
}

void log(Level level, const char* format, ...) {
  if (!logs(level)) return;
  static const int to = destination();
  char text[512];
  const int start = std::snprintf(text, sizeof text, "ivgpu: ");
  va_list args;
  va_start(args, format);
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang 14 does not see va_start here
  const int length = std::vsnprintf(text + start, sizeof text - static_cast<std::size_t>(start) - 1, format, args);
  va_end(args);
  const std::size_t end = std::min(sizeof text - 2, static_cast<std::size_t>(start + std::max(length, 0)));
  text[end] = '\n';
  [[maybe_unused]] const auto n = write(to, text, end + 1);
}

}  // namespace guest
