// A descriptor whose open file an untrusted process shares: a worker, QEMU, or a program with a VM's socket.
//
// O_NONBLOCK belongs to the open file, so every holder can clear it. Every holder can also empty or fill the file
// between the broker's poll() and its read(). A plain read() or write() could therefore block the broker for ever. This
// class offers only operations that never block, whatever the flags are:
//
// * drain() of an eventfd, by RWF_NOWAIT, which Linux supports for eventfds since 5.8.
// * own_opening() of a pipe: a new open file with its own flags. RWF_NOWAIT fails with EOPNOTSUPP for a pipe opened by
//   its path (seen on 6.18), and for every pipe before 6.5.
// * No write: RWF_NOWAIT fails with EOPNOTSUPP for a write to an eventfd (seen on 6.18). The broker wakes a worker by a
//   pipe that it has opened for itself.
//
// The two ends of a socket are two open files. The broker still sends and receives with MSG_DONTWAIT, and
// tools/boundary-check enforces that. docs/threat-model.md lists all descriptors that the broker shares.
#pragma once

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include <cstdint>
#include <string>
#include <utility>

#include "host/base/fd.h"

namespace host::broker {

class SharedFd {
 public:
  SharedFd() = default;
  explicit SharedFd(Fd fd) : fd_(std::move(fd)) {}
  // Empty on failure, and errno has the reason.
  [[nodiscard]] static SharedFd make_doorbell() { return SharedFd(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))); }

  // For passing on, keeping and polling only.
  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

  // Resets the eventfd's count.
  void drain() const {
    std::uint64_t count = 0;
    const iovec into{&count, sizeof count};
    [[maybe_unused]] const auto length = preadv2(fd_.get(), &into, 1, -1, RWF_NOWAIT);
  }
  // Opens the same pipe again: the new open file never blocks and is not shared. Empty on failure, and errno has the
  // reason.
  [[nodiscard]] Fd own_opening() const {
    return Fd(open(("/proc/self/fd/" + std::to_string(fd_.get())).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  }

 private:
  Fd fd_;
};

}  // namespace host::broker
