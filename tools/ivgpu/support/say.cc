#include "tools/ivgpu/support/say.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "ring/ops/log_level.h"
#include "tools/ivgpu/support/error.h"

namespace ivgpu {

void tell_unknown_log_level() {
  const char* value = std::getenv("IVGPU_LOG");
  if (value == nullptr || *value == '\0' || ring::log_level_of(value)) return;
  std::fprintf(stderr, "ivgpu: IVGPU_LOG: there is no level %.40s; it takes %s\n", value, ring::log_level_names);
}

void say(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  flush(stdout);
}

void flush(std::FILE* to) {
  // An error that a full buffer met before stands in the stream alone; a last empty flush would not meet it again.
  const bool failed_before = std::ferror(to) != 0;
  if (std::fflush(to) != 0 || failed_before) cannot_say(errno != 0 ? errno : EIO);
}

void cannot_say(int error) {
  // A reader that stops reading knows it; the exit code is the one of a program that SIGPIPE ends.
  if (error == EPIPE) throw Error(exit_code::signal_base + SIGPIPE, "");
  throw Error(exit_code::missing, std::string("the output cannot be written: ") + std::strerror(error));
}

}  // namespace ivgpu
