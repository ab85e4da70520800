// Writes the library's own lines to a file that the user chose. Its reader may be gone, or `ulimit -f` may bound its size.
// The kernel then raises SIGPIPE or SIGXFSZ, which must not end a program that has written nothing.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <ctime>

namespace guest {

// The kernel raises the signal of a failed write in this thread alone, so this thread blocks it and takes it.
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
