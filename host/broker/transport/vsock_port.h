// The vsock port of one VM: it accepts the connections of the VM's own programs.
//
// DoorbellServer owns it and gets the connections. The port may still belong to another program when the broker starts; it is
// then retried. Thread: the broker's loop.
//
// Trust: any VM, and this machine, can connect. The kernel names the peer's CID, and other CIDs than the VM's are refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/log_limiter.h"
#include "host/base/process/listener.h"
#include "host/base/rate.h"
#include "host/base/result.h"
#include "host/base/vsock.h"

namespace host::broker {

// The vsock port to which the VM's programs connect.
struct VsockEndpoint {
  BoundSocket socket;  // empty while another program has the port, which is retried
  std::uint32_t port = 0, cid = 0;
  BoundVsock (*bind)(std::uint32_t port) = bind_vsock;
  std::optional<std::uint32_t> (*cid_of)(int socket) = cid_of_peer;
  // A program waits for a slot for 20 s at most (guest/session/slot/claim.h), and then names it.
  Clock::duration patience = std::chrono::seconds(60);
  // As many as the largest starts_per_second.
  double per_second = 1000, burst = 200;
  // Rate at which the service manager keeps connections. Others are kept when they next name their slot, or after
  // `patience`.
  double kept_per_second = 200, kept_burst = 200;

  std::string in_words(const std::string& vm, const std::string& error) const;  // one sentence
};

class VsockPort {
 public:
  // `vm`: for the log. `accepted` gets the connections of the VM's programs.
  VsockPort(EventLoop& loop, std::string vm, VsockEndpoint endpoint, Listener::Accepted accepted);
  ~VsockPort() { close(); }
  VsockPort(const VsockPort&) = delete;
  VsockPort& operator=(const VsockPort&) = delete;

  // The error is one sentence. A port that is in use is no error.
  Result<void> open();
  void close();

  std::uint32_t cid() const { return endpoint_.cid; }  // the VM's
  std::optional<std::uint32_t> cid_of(const Fd& peer) const { return endpoint_.cid_of(peer.get()); }
  // How long a connection may go without naming a slot.
  Clock::duration patience() const { return endpoint_.patience; }
  // True if the service manager may keep another connection now.
  bool may_keep() { return keeping_.take(Clock::now()) == Span::zero(); }

 private:
  Result<void> listen();
  void retry(Clock::time_point since);
  void try_again(Clock::time_point since, bool is_late);
  void on_connection(Fd peer);

  EventLoop& loop_;
  const std::string vm_;
  VsockEndpoint endpoint_;
  const Listener::Accepted accepted_;
  std::unique_ptr<Listener> listener_;
  EventLoop::Id timer_ = 0;  // retries a port in use
  TokenBucket keeping_;
  LogLimiter strangers_;
};

}  // namespace host::broker
