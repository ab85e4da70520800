// One GPU under MPS: its daemon, the VMs on it, and their workers, which share a fate (host/broker/mps/mps.h).
//
// Invariant: while `lost_` has workers, none starts; when its last has gone, the daemon is up or will be tried again.
// A broker that goes on with workers of an earlier one (docs/design/034-restart.md) settles once all VMs are there: with the
// daemon that they are clients of, or they are lost.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "host/base/rate.h"
#include "host/broker/mps/mps.h"
#include "host/broker/mps/mps_daemon.h"
#include "host/broker/mps/mps_door.h"

namespace host::broker {

class MpsGpu {
 public:
  MpsGpu(EventLoop& loop, MpsDaemon::Place place);
  ~MpsGpu();
  MpsGpu(const MpsGpu&) = delete;
  MpsGpu& operator=(const MpsGpu&) = delete;

  // Starts the daemon for the first time, or goes on with that of an earlier broker. `has_clients`: that one's workers are
  // gone on with. False on failure, and `error` is one sentence.
  bool start(bool has_clients, std::string& error);
  bool serves(const Mps::User& user, std::string& error) const;
  void end(std::function<void()> done);

  void join(MpsSeat& seat) { seats_.push_back(&seat); }
  void leave(const MpsSeat& seat);
  bool ready() const { return daemon_.is_up() && lost_.empty() && !ending_ && settle_timer_ == 0; }
  void started(pid_t worker) { clients_.insert(worker); }
  // A worker of an earlier broker.
  void adopted(pid_t worker);
  void gone(pid_t worker);
  void lose(const std::string& why);
  void watch();
  std::unique_ptr<MpsDoor> open_door(Fd listener, const std::string& worker);
  void terminate(pid_t worker, std::function<void()> then);
  void leave() { daemon_.leave(); }

 private:
  void settle_later();
  void settle();
  bool waits_for_other();
  void on_up();
  void on_down(const std::string& why, bool was_up);
  void retry_later(Clock::duration pause);
  void try_again();
  void tell_ready();
  std::string vms() const;

  EventLoop& loop_;
  MpsDaemon daemon_;
  std::vector<MpsSeat*> seats_;
  std::set<pid_t> clients_;  // workers that live
  std::set<pid_t> lost_;     // those of them that were there when all were lost
  Backoff backoff_;
  Clock::time_point up_since_{};
  EventLoop::Id retry_timer_ = 0, grace_timer_ = 0, look_timer_ = 0, settle_timer_ = 0;
  std::string not_adopted_;          // why the daemon that was there is not gone on with
  Clock::time_point other_until_{};  // so long one that ends is waited for
  bool is_adopted_ = false, ending_ = false;
};

}  // namespace host::broker
