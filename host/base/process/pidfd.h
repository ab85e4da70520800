// Processes by pidfd, which never refers to another process after the end of its own.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "host/base/fd.h"

namespace host::broker {

// Precondition: the number still belongs to the process. Empty on failure, and errno has the reason.
[[nodiscard]] inline Fd open_process(pid_t process) {
  return Fd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

// `number` 0 only tests the process. False if it has ended and was reaped (ESRCH), or `process` is no pidfd.
inline bool send_signal(int process, int number) {
  return syscall(SYS_pidfd_send_signal, process, number, nullptr, 0) == 0;
}

}  // namespace host::broker
