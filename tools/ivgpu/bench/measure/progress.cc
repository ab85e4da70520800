#include "tools/ivgpu/bench/measure/progress.h"

#include <unistd.h>

#include <cstdio>

namespace ivgpu::bench {

Progress::Progress() : on_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { show(""); }

void Progress::show(const std::string& text) const {
  // 78 characters fit on one line of any terminal
  if (on_) std::fprintf(stderr, "\r\033[K%s", text.substr(0, 78).c_str());
}

}  // namespace ivgpu::bench
