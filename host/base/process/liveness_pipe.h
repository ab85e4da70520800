// Detects that the worker's broker has gone, and bounds how long the worker serves without one.
//
// A broker whose workers may outlive it (docs/design/034-restart.md) alone holds the write end of a pipe; its workers
// hold the read end. The pipe closes when the broker ends. The control socket does not, because the service manager
// holds a copy of the broker's end. The next broker sends the read end of its own pipe over that socket. The worker
// ends if no broker comes in time, or if the control socket closes. Until then the worker polls its slot: without a
// broker no process may forward doorbells (host/broker/transport/doorbell_poller.h).
//
// A stalled broker forwards no doorbells either, and the pipe of a killed broker may take seconds to close. A claimed
// worker without a doorbell of its own therefore also polls, often enough that its guest does not consider it dead
// (guest/session/slot/heartbeat.cc).
//
// Thread-safety: only the doorbell thread uses it.
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

class LivenessPipe {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds between_looks{5};           // without a broker
  static constexpr std::chrono::milliseconds between_looks_anyway{200};  // with a broker that forwards doorbells

  // `fd`: the pipe's read end, owned by this object; -1: the kernel kills the worker with its broker. `doorbell_by_broker`:
  // the guest has no doorbell, so the broker wakes the worker.
  LivenessPipe(int fd, std::chrono::milliseconds patience, bool doorbell_by_broker = false)
      : fd_(fd), patience_(patience), doorbell_by_broker_(doorbell_by_broker) {}
  ~LivenessPipe() { replace(-1); }
  LivenessPipe(const LivenessPipe&) = delete;
  LivenessPipe& operator=(const LivenessPipe&) = delete;

  // For poll(), which ignores a descriptor of -1.
  pollfd to_poll() const { return {fd_, POLLIN, 0}; }
  // Time until the next poll, for poll(); -1: none. `is_used`: a guest has claimed the worker.
  int timeout_ms(bool is_used = true) const {
    if (!since_) return doorbell_by_broker_ && is_used ? static_cast<int>(between_looks_anyway.count()) : -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*since_ + patience_ - Clock::now());
    return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), between_looks).count());
  }
  // Takes the events that poll() reported for to_poll().
  void found(short events) {
    if (events == 0) return;
    replace(-1);
    since_ = Clock::now();
  }
  bool is_alone() const { return since_.has_value(); }
  bool is_over() const { return since_ && Clock::now() - *since_ >= patience_; }

  // Receives the next control message as recvmsg() does. An attached descriptor is the pipe of a new broker.
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
  const bool doorbell_by_broker_;
  std::optional<Clock::time_point> since_;  // since when the worker has had no broker
};

}  // namespace host::worker
