// The start of each program of this project: main() calls start_process() first, while it has one thread.
//
// A process that starts a program may have closed descriptors, or ignored or blocked signals, and the program inherits
// all of that. A library must not call this, since the process is not ours (ring/abi/descriptor.h). It cannot fail:
// without /dev/null, it opens the root folder with no right to read or write.
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

// Opens each of the descriptors 0 to 2 that is closed, so that no other file gets its number. Reads from them end at
// once, writes to standard output fail, and writes to standard error vanish. exec closes them again.
inline void hold_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    const int flags = (fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC;
    if (open("/dev/null", flags) < 0) open("/", O_PATH | O_CLOEXEC);  // no lower number is free, so it is fd
  }
}

// Keeps exit statuses of children, makes writes beyond the file size limit fail with EFBIG, and unblocks all signals.
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
