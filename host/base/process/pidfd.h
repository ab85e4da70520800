// Processes by descriptors of them (pidfds), which mean no other process once theirs has ended.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "host/base/fd.h"

namespace host::broker {

// Precondition: the number is the process's still. Empty on failure, and errno says why.
inline Fd open_process(pid_t process) { return Fd(static_cast<int>(syscall(SYS_pidfd_open, process, 0))); }

// `number` 0 only asks. False where the process has been asked after to its end (ESRCH), or it is no pidfd.
inline bool send_signal(int process, int number) {
  return syscall(SYS_pidfd_send_signal, process, number, nullptr, 0) == 0;
}

}  // namespace host::broker
