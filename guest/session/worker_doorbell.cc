#include "guest/session/worker_doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace guest {

void WorkerDoorbell::wake(ring::Shared<std::uint32_t> word) {
  if (futexes_)
    syscall(SYS_futex, word.futex_word(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  else
    ring();
}

}  // namespace guest
