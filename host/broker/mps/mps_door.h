// The way of a jailed worker to the MPS daemon of its GPU, and to nothing else. NVIDIA's driver connects to the daemon
// anew for each context that a program makes. The worker's filter has each of its connect() calls wait for the broker
// here, by seccomp's user notification, and the broker acts in its place: it makes a connection of its own and puts it
// where the worker's descriptor was. docs/design/031-mps.md has the reasons.
//
// Trust: a guest may control the worker. Nothing of its call counts but the number of a descriptor, which is its own to
// lose: neither the address that it names nor any other memory of it is read. So often a second and no oftener it is
// answered, and waits otherwise.
//
// A call is taken from the kernel once it can be answered, and not before: one that nobody has taken waits for the next
// broker, which is passed the listener (docs/design/034-restart.md), and one that was taken and not answered would wait for ever.
//
// Threads: the broker's one; no call here waits.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/log_limiter.h"
#include "host/base/paced_watch.h"

namespace host::broker {

class MpsDoor {
 public:
  // More than a GPU makes contexts: one takes it tens of milliseconds.
  static constexpr PacedWatch::Pace pace = {100, 20};

  // How long a call waits for a daemon whose queue is full, and between the tries.
  static constexpr std::chrono::milliseconds patience{500}, between_tries{25};

  struct Place {
    std::string daemon;  // the path of the socket by which it is reached
    std::string worker;  // its name in the log
    // As whom the daemon sees who connects: the worker's user. Only a root's broker becomes him for that moment.
    uid_t uid = 0;
    gid_t gid = 0;
  };

  // `listener`: whatever a worker has passed. Null where it is no listener, or the kernel's put no descriptor in place
  // (before Linux 5.9): it is closed then, and the worker's connect() fails.
  static std::unique_ptr<MpsDoor> open(EventLoop& loop, Fd listener, Place place);
  MpsDoor(const MpsDoor&) = delete;
  MpsDoor& operator=(const MpsDoor&) = delete;

  int listener_fd() const { return listener_.get(); }

 private:
  struct Call {
    std::uint64_t id;
    std::uint32_t number;  // of the worker's descriptor
  };

  MpsDoor(EventLoop& loop, Fd listener, Place place);
  void on_call();
  short state() const;
  std::optional<Call> take() const;
  void answer(const Fd& connection) const;
  bool put_in_place(const Call& call, const Fd& connection) const;
  void tell_failure(int why);
  bool may_wait(int why);

  EventLoop& loop_;
  const Fd listener_;
  const Place place_;
  LogLimiter failures_;
  std::optional<Clock::time_point> waits_since_;  // the call that is next, for a place
  std::unique_ptr<PacedWatch> watch_;
};

}  // namespace host::broker
