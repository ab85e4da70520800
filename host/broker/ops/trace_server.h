// The socket of `ivgpu trace` (ring/ops/trace_socket.h), and the list of traced sessions. A worker traces while any
// client watches it, even if the client that started the trace has gone.
//
// A client that does not read or sends an invalid request is dropped. The broker never waits for a client.
#pragma once

#include <sys/types.h>

#include <array>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "host/base/event_loop.h"
#include "host/base/log_limiter.h"
#include "host/base/process/listener.h"
#include "host/base/result.h"
#include "host/broker/worker/telemetry.h"
#include "ring/ops/trace_socket.h"

namespace host::broker {

class TraceServer {
 public:
  using Session = std::uint64_t;  // 0: none

  explicit TraceServer(EventLoop& loop) : loop_(loop) {}
  ~TraceServer();
  TraceServer(const TraceServer&) = delete;
  TraceServer& operator=(const TraceServer&) = delete;

  // The error is one sentence. Sessions may begin earlier.
  Result<void> listen(const ListenerOptions& socket);

  // Makes a VM known: requests for unknown VMs or slots are refused.
  void add_vm(const std::string& name, std::uint32_t slots) { vms_[name] = slots; }
  void remove_vm(const std::string& name) { vms_.erase(name); }
  // Events of a worker. The caller keeps the telemetry alive until end().
  Session begin(const std::string& vm, std::uint32_t slot, pid_t worker, const Telemetry& telemetry);
  void claimed(Session session, std::uint32_t process, std::uint32_t peer);
  void end(Session session);

 private:
  struct Traced {
    std::string vm;
    std::uint32_t slot = 0, worker = 0, process = 0, peer = 0;
    const Telemetry* telemetry = nullptr;
  };
  struct Client {
    Fd socket;
    std::array<std::byte, sizeof(ring::TraceRequest)> bytes;
    std::size_t read = 0;          // bytes of the next request
    ring::TraceRequest request{};  // the last valid one
    bool listens = false;          // it has sent a valid request
    EventLoop::Id watch = 0, timer = 0;
  };
  using Clients = std::list<Client>;

  void admit(Fd socket);
  void read_request(Clients::iterator client);
  void understand(Clients::iterator client);
  void begin_reporting(Clients::iterator client);
  static bool narrows(const ring::TraceRequest& next, const ring::TraceRequest& first);
  std::string refusal(const ring::TraceRequest& request) const;
  static bool wants(const Client& client, const Traced& traced);
  bool report(const Client& client, ring::TraceNews news, Session session, const Traced& traced);
  static bool send_message(const Client& client, const ring::TraceMessage& message, int descriptor);
  void notify_all(ring::TraceNews news, Session session, const Traced& traced);
  void set_switches() const;
  Clients::iterator drop(Clients::iterator client);

  EventLoop& loop_;
  std::unique_ptr<Listener> listener_;
  std::map<std::string, std::uint32_t> vms_;
  std::map<Session, Traced> sessions_;
  Session next_ = 1;
  Clients clients_;
  LogLimiter failures_;
};

std::string trace_path(const std::string& runtime_dir);

}  // namespace host::broker
