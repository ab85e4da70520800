#include "tools/ivgpu/support/standard_output.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "ring/ops/log_level.h"
#include "tools/ivgpu/support/error.h"

namespace ivgpu {

void report_unknown_log_level() {
  const char* value = std::getenv("IVGPU_LOG");
  if (value == nullptr || *value == '\0' || ring::log_level_of(value)) return;
  std::fprintf(stderr, "ivgpu: IVGPU_LOG: there is no level %.40s; it takes %s\n", value, ring::log_level_names);
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  flush(stdout);
}

void flush(std::FILE* to) {
  // An earlier failed write shows only in the stream's error flag; a flush of an empty buffer succeeds.
  const bool failed_before = std::ferror(to) != 0;
  if (std::fflush(to) != 0 || failed_before) write_failed(errno != 0 ? errno : EIO);
}

void write_failed(int error) {
  // The reader has closed the pipe, so print nothing and exit as a program that SIGPIPE kills.
  if (error == EPIPE) throw Error(exit_code::signal_base + SIGPIPE, "");
  throw Error(exit_code::missing, std::string("the output cannot be written: ") + std::strerror(error));
}

}  // namespace ivgpu
