// The start of each program of this project: main() calls start_process() first, while it has one thread.
//
// The process that starts a program may have closed descriptors, or ignored or blocked signals, and the program
// inherits these settings. A library must not call start_process(), since the process belongs to the user's program
// (ring/abi/descriptor.h). start_process() cannot fail: without /dev/null, it opens the root folder with no right to
// read or write.
//
// ```cpp
// int main_of_a_program(int argc, char** argv, int (*run)(int argc, char** argv)) {
//   ring::start_process();  // before the first descriptor and the first thread
//   return run(argc, argv);
// }
// ```
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace ring {

// Opens each of the descriptors 0 to 2 that is closed, so that no other file gets the descriptor's number. Reads from
// these descriptors end at once, writes to standard output fail, and writes to standard error are discarded. exec
// closes the descriptors again.
inline void hold_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    const int flags = (fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC;
    // No lower number is free, so the new descriptor is `fd`.
    if (open("/dev/null", flags) < 0) open("/", O_PATH | O_CLOEXEC);
  }
}

// Resets signals so that children keep their exit statuses, writes beyond the file size limit fail with EFBIG, and no
// signal is blocked.
inline void reset_signals() {
  std::signal(SIGCHLD, SIG_DFL);
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

inline void start_process() {
  hold_standard_descriptors();
  reset_signals();
}

}  // namespace ring
