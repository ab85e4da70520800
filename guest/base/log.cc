#include "guest/base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "guest/base/uncancelled.h"
#include "guest/base/write_quietly.h"
#include "ring/abi/descriptor.h"

namespace guest {
namespace {

// Returns the descriptor of IVGPU_LOG_FILE if the file can be opened, else of standard error. The descriptor is never
// closed, because the last lines are written when the process ends.
int destination() {
  const char* path = std::getenv("IVGPU_LOG_FILE");
  const int fd =
      path != nullptr && *path != '\0' ? cuabi::open_file(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : STDERR_FILENO;
  return fd >= 0 ? fd : STDERR_FILENO;
}

int descriptor() {
  static const int to = destination();
  return to;
}

// Writes one line to the log.
[[gnu::format(printf, 1, 0)]] void write_line(const char* format, va_list args) {
  const Uncancelled here;
  char text[2048];  // 2048 bytes, since the names of kernels are long
  const int start = std::snprintf(text, sizeof text, "ivgpu: ");
  const int length = std::vsnprintf(text + start, sizeof text - static_cast<std::size_t>(start) - 1, format, args);
  const std::size_t end = std::min(sizeof text - 2, static_cast<std::size_t>(start + std::max(length, 0)));
  text[end] = '\n';
  write_quietly(descriptor(), text, end + 1);
}

// Writes the lines about the log's level. log() needs the level, so it cannot write these lines.
[[gnu::format(printf, 1, 2)]] void write_first_line(const char* format, ...) {
  va_list args;
  va_start(args, format);
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang 14 does not see va_start here
  write_line(format, args);
  va_end(args);
}

}  // namespace

void open_log() { descriptor(); }

Level chosen_level() {
  const char* value = std::getenv("IVGPU_LOG");
  if (value == nullptr || *value == '\0') return Level::Warn;
  if (const auto level = ring::log_level_of(value)) return *level;
  write_first_line("IVGPU_LOG: there is no level %.40s; it takes %s", value, ring::log_level_names);
  return Level::Warn;
}

void log(Level level, const char* format, ...) {
  if (!logs(level)) return;
  va_list args;
  va_start(args, format);
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang 14 does not see va_start here
  write_line(format, args);
  va_end(args);
}

}  // namespace guest
