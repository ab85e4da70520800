#include "host/untrusted/callbacks/guest_waker.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace host {
namespace {

void interrupt(int fd) {
  pollfd counter{fd, POLLIN | POLLOUT, 0};
  // There is no eventfd, or its last signal is unread.
  if (poll(&counter, 1, 0) != 1 || counter.revents != POLLOUT) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = write(fd, &one, sizeof one);
}

}  // namespace

void GuestWaker::wake_by(ring::Asleep how) const {
  if (how == ring::Asleep::ByDoorbell) return interrupt(interrupt_fd_);
  syscall(SYS_futex, asleep_.word().futex_word(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace host
