// The connect proxy: lets a jailed worker connect to its GPU's MPS daemon, and to nothing else. NVIDIA's driver
// connects again for each context that a program makes. The worker's seccomp filter suspends each connect() and
// notifies the broker. The broker connects in the worker's place, and replaces the worker's descriptor by the connected
// socket. docs/design/031-mps.md has the reasons.
//
// Trust: a guest may control the worker. The broker uses only the descriptor's number, which is the worker's own to
// lose. It reads neither the address in the call nor other memory of the worker. Calls are answered at a limited rate.
//
// A call is received from the kernel only when it can be answered. Calls not yet received wait for the next broker,
// which gets the listener (docs/design/034-restart.md); a call received but not answered would wait for ever.
//
// Threads: the broker's event loop only; no call here blocks.
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

class MpsConnectProxy {
 public:
  // More contexts than a GPU can make: each takes tens of milliseconds.
  static constexpr PacedWatch::Pace pace = {100, 20};

  // How long a call waits while the daemon's queue is full, and the time between attempts.
  static constexpr std::chrono::milliseconds patience{500}, between_tries{25};

  struct Place {
    std::string daemon;  // path of the daemon's socket
    std::string worker;  // name in the log
    // The workers' user, which the daemon sees as the peer. A broker without root keeps its own user.
    uid_t uid = 0;
    gid_t gid = 0;
  };

  // `listener`: any descriptor that a worker has passed. Null if it is no listener, or if the kernel cannot install
  // descriptors (before Linux 5.9); the listener is then closed, and the worker's connect() fails.
  [[nodiscard]] static std::unique_ptr<MpsConnectProxy> open(EventLoop& loop, Fd listener, Place place);
  MpsConnectProxy(const MpsConnectProxy&) = delete;
  MpsConnectProxy& operator=(const MpsConnectProxy&) = delete;

  int listener_fd() const { return listener_.get(); }

 private:
  struct Call {
    std::uint64_t id;
    std::uint32_t number;  // the worker's descriptor
  };

  MpsConnectProxy(EventLoop& loop, Fd listener, Place place);
  void on_call();
  short state() const;
  std::optional<Call> take() const;
  void answer(const Fd& connection) const;
  bool put_in_place(const Call& call, const Fd& connection) const;
  void report_failure(int why);
  bool may_wait(int why);

  const Fd listener_;
  const Place place_;
  LogLimiter failures_;
  std::optional<Clock::time_point> waits_since_;  // since when the next call has waited
  std::unique_ptr<PacedWatch> watch_;
};

}  // namespace host::broker
