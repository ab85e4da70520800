// The start of each program of this project: main() calls start_process() first, while it has one thread.
//
// The process that starts a program may have closed descriptors, ignored signals or blocked them, and a program
// inherits all of that. A library must not call it, since the process is not ours (ring/abi/descriptor.h). It cannot
// fail: where /dev/null is missing, it opens the root folder without any right to read or write.
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

// Opens those of the descriptors 0 to 2 that are closed, so that no other file gets their numbers. A read from such an input
// ends at once, a write to such a standard output fails, and one to such a standard error vanishes. exec closes them again.
inline void hold_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    const int flags = (fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC;
    if (open("/dev/null", flags) < 0) open("/", O_PATH | O_CLOEXEC);  // no lower number is free, so it is this one
  }
}

// Lets the kernel keep how children end, has a write beyond the limit of a file's size fail with EFBIG, and unblocks all signals.
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
