// One GPU under MPS: its daemon, the VMs on it, and their workers (host/broker/mps/mps.h).
//
// Invariant: while `lost_` is not empty, no worker starts. When its last worker has gone, the daemon is up or will be
// restarted. A broker with an earlier broker's workers (docs/design/034-restart.md) decides when all VMs are there: it
// adopts their daemon, or the workers are lost.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "host/base/rate.h"
#include "host/base/result.h"
#include "host/broker/mps/mps.h"
#include "host/broker/mps/mps_connect_proxy.h"
#include "host/broker/mps/mps_daemon.h"

namespace host::broker {

class MpsGpu {
 public:
  MpsGpu(EventLoop& loop, MpsDaemon::Place place);
  ~MpsGpu();
  MpsGpu(const MpsGpu&) = delete;
  MpsGpu& operator=(const MpsGpu&) = delete;

  // Starts the daemon, or adopts an earlier broker's. `has_clients`: that broker's workers have been adopted. The error
  // is one sentence, as with serves().
  Result<void> start(bool has_clients);
  Result<void> serves(const Mps::User& user) const;
  void end(std::function<void()> done);

  void join(MpsRegistration& registration) { registrations_.push_back(&registration); }
  void leave(const MpsRegistration& registration);
  bool ready() const { return daemon_.is_up() && lost_.empty() && !ending_ && resolve_timer_ == 0; }
  void started(pid_t worker) { clients_.insert(worker); }
  // Adds an earlier broker's worker.
  void adopted(pid_t worker);
  void gone(pid_t worker);
  void lose(const std::string& why);
  void watch();
  [[nodiscard]] std::unique_ptr<MpsConnectProxy> open_proxy(Fd listener, const std::string& worker);
  void terminate(pid_t worker, std::function<void()> then);
  void leave() { daemon_.leave(); }

 private:
  void resolve_later();
  void resolve();
  bool waits_for_other();
  void on_up();
  void on_down(const std::string& why, bool was_up);
  void retry_later(Clock::duration pause);
  void try_again();
  void notify_ready();
  std::string vms() const;

  EventLoop& loop_;
  MpsDaemon daemon_;
  std::vector<MpsRegistration*> registrations_;
  std::set<pid_t> clients_;  // running workers
  std::set<pid_t> lost_;     // clients when the daemon or server failed
  Backoff backoff_;
  Clock::time_point up_since_{};
  EventLoop::Id retry_timer_ = 0, grace_timer_ = 0, look_timer_ = 0, resolve_timer_ = 0;
  Clock::time_point other_until_{};  // deadline for the end of another broker's daemon
  bool is_adopted_ = false, ending_ = false;
};

}  // namespace host::broker
