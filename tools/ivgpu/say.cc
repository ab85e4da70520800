#include "tools/ivgpu/say.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include "tools/ivgpu/error.h"

namespace ivgpu {

void say(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  flush(stdout);
}

void flush(std::FILE* to) {
  // What a full buffer met before stands in the stream alone; a last empty flush would not meet it again.
  const bool failed_before = std::ferror(to) != 0;
  if (std::fflush(to) != 0 || failed_before) cannot_say(errno != 0 ? errno : EIO);
}

void cannot_say(int error) {
  // Who stops reading knows it; the exit code is the one of a program that SIGPIPE ends.
  if (error == EPIPE) throw Error(exit_code::signal_base + SIGPIPE, "");
  throw Error(exit_code::missing, std::string("the output cannot be written: ") + std::strerror(error));
}

}  // namespace ivgpu
