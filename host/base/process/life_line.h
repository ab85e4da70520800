// How a worker notices that it has no broker any more, and how long it goes on without one.
//
// Every broker that lets its workers outlive it (docs/design/034-restart.md) holds the writing end of a pipe, alone, and
// its workers have the reading end: the pipe's end is the broker's. The control socket does not end then, since the service
// manager holds a copy of its other end. The next broker sends the reading end of its own pipe by that socket. Where none
// comes in time the worker ends, and so it does as soon as the control socket ends. Meanwhile nobody may ring the worker
// (host/broker/transport/bell_line.h), so it looks by itself.
//
// A broker that stalls rings nobody either, and one that was killed may take seconds until its pipe ends. So a worker that its
// broker rings, and a guest uses, looks now and then in any case: soon enough that its guest does not take it for gone
// (guest/session/slot/heartbeat.cc).
//
// Thread-safety: the bell thread's alone.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "host/base/process/control.h"

namespace host::worker {

class LifeLine {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds between_looks{5};           // without a broker
  static constexpr std::chrono::milliseconds between_looks_anyway{200};  // with one that rings it

  // `fd`: the pipe's reading end, from now on this object's; -1: the kernel ends the worker with its broker. `rung_by_broker`:
  // the guest has no doorbell.
  LifeLine(int fd, std::chrono::milliseconds patience, bool rung_by_broker = false)
      : fd_(fd), patience_(patience), rung_by_broker_(rung_by_broker) {}
  ~LifeLine() { replace(-1); }
  LifeLine(const LifeLine&) = delete;
  LifeLine& operator=(const LifeLine&) = delete;

  // For poll(), which ignores a descriptor of -1.
  pollfd to_poll() const { return {fd_, POLLIN, 0}; }
  // How long until the next look. `is_used`: by a guest; a spare worker has nothing to look at.
  int timeout_ms(bool is_used = true) const {
    if (!since_) return rung_by_broker_ && is_used ? static_cast<int>(between_looks_anyway.count()) : -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*since_ + patience_ - Clock::now());
    return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), between_looks).count());
  }
  // What poll() has found of it.
  void found(short events) {
    if (events == 0) return;
    replace(-1);
    since_ = Clock::now();
  }
  bool is_alone() const { return since_.has_value(); }
  bool is_over() const { return since_ && Clock::now() - *since_ >= patience_; }

  // The next message of the control socket, as recvmsg() tells; a descriptor beside it is the line of another broker.
  ssize_t receive(int control, MemoryMessage& message) {
    iovec data{&message, sizeof message};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &data, header.msg_iovlen = 1;
    header.msg_control = room, header.msg_controllen = sizeof room;
    const ssize_t length = recvmsg(control, &header, MSG_CMSG_CLOEXEC);
    if (length < 0) return length;
    for (const cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, const_cast<cmsghdr*>(c)))
      if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) adopted_by(*c);
    return length;
  }

 private:
  void adopted_by(const cmsghdr& header) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(&header), sizeof fd);
    replace(fd);
    since_.reset();
  }
  void replace(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

  int fd_;
  const std::chrono::milliseconds patience_;
  const bool rung_by_broker_;
  std::optional<Clock::time_point> since_;  // it has had no broker
};

}  // namespace host::worker
