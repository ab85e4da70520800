// A descriptor whose open file an untrusted process has as well: a worker, QEMU, a program with a VM's socket.
//
// O_NONBLOCK belongs to the open file, so every holder can clear it. Every holder can also empty or fill the file between
// another's poll() and read(). A plain read() or write() of the broker could therefore wait for ever. This type offers
// only what never waits, whatever the flags are:
//
// * drain() of an eventfd, by RWF_NOWAIT. Linux has it for eventfds since 5.8.
// * own_opening() of a pipe: another open file, with flags of its own. RWF_NOWAIT answers EOPNOTSUPP for a pipe that was
//   opened by its path (seen on 6.18), and for every pipe before 6.5.
// * Nothing that writes: RWF_NOWAIT answers EOPNOTSUPP for a write to an eventfd (seen on 6.18). The broker rings a worker
//   by a pipe of which it has its own opening.
//
// The two ends of a socket are two open files. The broker sends and receives with MSG_DONTWAIT all the same, which
// tools/boundary-check requires. docs/threat-model.md lists all descriptors that the broker shares.
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
  // Empty on failure, and errno says why.
  static SharedFd make_bell() { return SharedFd(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))); }

  // To be passed on, kept and polled.
  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

  // Takes the rings that an eventfd has.
  void drain() const {
    std::uint64_t count = 0;
    const iovec into{&count, sizeof count};
    [[maybe_unused]] const auto length = preadv2(fd_.get(), &into, 1, -1, RWF_NOWAIT);
  }
  // The same pipe by another open file, which neither waits nor is shared. Empty on failure, and errno says why.
  Fd own_opening() const {
    return Fd(open(("/proc/self/fd/" + std::to_string(fd_.get())).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  }

 private:
  Fd fd_;
};

}  // namespace host::broker
