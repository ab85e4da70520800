// Writes the library's own lines to a file that the user chose. If the file's reader is gone or `ulimit -f` is reached,
// the kernel raises SIGPIPE or SIGXFSZ. Neither signal may end a program that has written nothing itself.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <ctime>

namespace guest {

// The kernel sends the signal of a failed write only to the writing thread. This thread therefore blocks the signal and
// consumes it.
inline void write_quietly(int fd, const char* text, std::size_t bytes) {
  sigset_t raised, before, pending;
  sigemptyset(&raised);
  sigaddset(&raised, SIGPIPE);
  sigaddset(&raised, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &raised, &before);
  sigpending(&pending);
  const int error = write(fd, text, bytes) < 0 ? errno : 0;
  const int number = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
  if (number != 0 && sigismember(&pending, number) == 0) {
    sigemptyset(&raised);
    sigaddset(&raised, number);
    const timespec at_once{};
    while (sigtimedwait(&raised, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace guest
