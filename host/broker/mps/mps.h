// MPS for this broker's VMs (policy = "mps"): a control daemon for each GPU that a VM uses
// (host/broker/mps/mps_daemon.h). The workers on a GPU are clients of one server, so a fault ends all of them together.
// docs/design/031-mps.md has the reasons.
//
// A worker starts only while the daemon is up. After a fault, or the end of daemon or server, all its clients count as
// lost. Spare workers end at once, and sessions after `grace`, in which programs can learn the driver's own error. A
// server with a fault accepts no client until its last old one has gone; new workers start then. A daemon that ends is
// restarted after a pause that grows with failures.
//
// If sessions outlive the broker, so do the daemons, and the next broker adopts them (docs/design/034-restart.md).
//
// Trust: a hostile worker may report a fault that did not happen. Its guest could also cause a real one.
//
// Threads: the broker's event loop only.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/result.h"
#include "host/broker/mps/mps_left.h"

namespace host::broker {

class FdStore;
class MpsConnectProxy;
class MpsGpu;

// Registers a VM as a client of its GPU's daemon while the object lives.
class MpsRegistration {
 public:
  // Callbacks to the VM. `ready` may be called within gone(), and `lost` within crashed().
  struct Acts {
    std::function<void()> ready;   // workers may start
    std::function<void()> failed;  // the daemon did not start; the log says why
    // All clients are lost. The VM ends its spare workers and logs the reason.
    std::function<void(const std::string& why)> lost;
    std::function<void()> end_sessions;  // `grace` is over
    std::function<bool()> has_sessions;
    std::function<std::string()> fault;  // the fault that a session has reported, as text; "": none
  };
  // How long programs may take to see the error. An idle program delays the restart for all VMs by this time.
  static constexpr auto grace = std::chrono::seconds(5);

  ~MpsRegistration();
  MpsRegistration(const MpsRegistration&) = delete;
  MpsRegistration& operator=(const MpsRegistration&) = delete;

  // False if no worker may start now; `ready` follows.
  [[nodiscard]] bool ready() const;
  // Events of a worker, which is a client from its start on. `adopted`: started by an earlier broker.
  void started(pid_t worker);
  void adopted(pid_t worker);
  void gone(pid_t worker);
  // Another process than the broker killed a worker with a session: the server may have lost its work halfway.
  void crashed(const std::string& how);
  // A session begins. While a VM of the GPU has one, the broker checks for faults four times a second.
  void watch();
  // Opens the connect proxy of this VM's worker, with the listener that the worker has passed. Null if the descriptor
  // is no listener.
  [[nodiscard]] std::unique_ptr<MpsConnectProxy> open_proxy(Fd listener, const std::string& worker);
  // Has the server release a worker that is to be killed, then calls `then`: within a second, even if the daemon hangs.
  void before_kill(pid_t worker, std::function<void()> then);

 private:
  friend class Mps;
  friend class MpsGpu;
  MpsRegistration(MpsGpu& gpu, std::string vm, Acts acts);

  MpsGpu& gpu_;
  const std::string vm_;
  const Acts acts_;
};

class Mps {
 public:
  struct Setting {
    std::string program;      // the path of nvidia-cuda-mps-control
    std::string runtime_dir;  // the broker's
    int priority = 0;         // of the daemons, as nice(1) counts
    // Daemons outlive the broker through this; null: they do not.
    FdStore* store = nullptr;
    std::string supervisor = {};  // path of ivgpu-mps
    int life_fd = -1;             // closes with the broker
    std::uint32_t outlive_ms = 0;
    bool may_be_second = false;  // daemons of an earlier broker may still be ending
  };
  struct User {
    uid_t uid;
    gid_t gid;
  };

  Mps(EventLoop& loop, Setting setting);
  // Precondition: no MpsRegistration is left.
  ~Mps();
  Mps(const Mps&) = delete;
  Mps& operator=(const Mps&) = delete;

  struct Member {
    std::string gpu;  // UUID
    std::string vm;
    User user;
    bool goes_on = false;  // with an earlier broker's workers
  };
  // Starts the GPU's daemon if it does not run yet. An error, one sentence, if no daemon can serve the VM.
  Result<std::unique_ptr<MpsRegistration>> join(const Member& member, MpsRegistration::Acts acts);
  // The folder by which clients reach the GPU's daemon, for their whole life.
  std::string pipe_of(const std::string& gpu) const;
  // Lets the daemons go on when the broker ends.
  void leave();
  // Ends all daemons, and calls `done` when the last has gone.
  void end(std::function<void()> done);

 private:
  void let_go(pid_t worker, const std::function<void()>& then);

  EventLoop& loop_;
  const Setting setting_;
  MpsLeft left_;
  std::map<std::string, std::unique_ptr<MpsGpu>> gpus_;
};

}  // namespace host::broker
