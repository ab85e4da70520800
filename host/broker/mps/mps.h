// MPS for the VMs of this broker (policy = "mps"): a control daemon for each GPU that some VM uses
// (host/broker/mps/mps_daemon.h), and what the VMs on a GPU must know of each other, since their workers are clients of one
// server and share its fate. docs/design/031-mps.md has the reasons.
//
// A worker starts only while the daemon is up. A fault, or the end of daemon or server, is taken for the loss of all
// clients: spare workers end at once, sessions after `grace`, in which their programs can learn the driver's own error,
// and new workers start once the last old client has gone, since a server that had a fault takes no new ones before. A
// daemon that ends is started again, after a pause that grows with failures.
//
// Where sessions outlive the broker, daemons do, too, and the next broker goes on with them (docs/design/034-restart.md).
//
// Trust: a worker's words may say that there was a fault where none was. Its guest could make a real one.
//
// Threads: the broker's one.
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
#include "host/broker/mps/mps_left.h"

namespace host::broker {

class FdStore;
class MpsDoor;
class MpsGpu;

// A VM's place at its GPU's daemon, for as long as the object lives.
class MpsSeat {
 public:
  // What it has done to its VM. Of these `ready` may be called within gone(), and `lost` within crashed().
  struct Acts {
    std::function<void()> ready;   // workers may start
    std::function<void()> failed;  // the daemon did not start; the log says why
    // All clients are lost. The VM ends its spare workers, and tells.
    std::function<void(const std::string& why)> lost;
    std::function<void()> end_sessions;  // the programs have had time to learn it
    std::function<bool()> has_sessions;
    std::function<std::string()> fault;  // that one of its sessions has reported, in words; "": none
  };
  // How long programs have to learn that their GPU's clients are lost. An idle one keeps all others waiting.
  static constexpr auto grace = std::chrono::seconds(5);

  ~MpsSeat();
  MpsSeat(const MpsSeat&) = delete;
  MpsSeat& operator=(const MpsSeat&) = delete;

  // False: no worker may start now, and `ready` follows.
  bool ready() const;
  // A worker's life: it is a client from its start on. `adopted`: one of an earlier broker.
  void started(pid_t worker);
  void adopted(pid_t worker);
  void gone(pid_t worker);
  // A worker with a session was killed, and not by the broker: its work may have been cut off in the server.
  void crashed(const std::string& how);
  // A session begins: its faults are looked for, four times a second, while some VM of the GPU has one.
  void watch();
  // The door of a worker of this VM to the daemon, with the listener that it has passed. Null where that cannot be one.
  std::unique_ptr<MpsDoor> open_door(Fd listener, const std::string& worker);
  // Has the server let go of a worker that is to be killed, then calls `then`: within a second, whatever the daemon does.
  void before_kill(pid_t worker, std::function<void()> then);

 private:
  friend class Mps;
  friend class MpsGpu;
  MpsSeat(MpsGpu& gpu, std::string vm, Acts acts);

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
    // Where daemons outlive the broker; null: they do not.
    FdStore* store = nullptr;
    std::string keeper = {};  // the path of ivgpu-mps
    int life_fd = -1;         // ends with the broker
    std::uint32_t outlive_ms = 0;
    bool may_be_second = false;  // another broker may have been here, whose daemons are about to end
  };
  struct User {
    uid_t uid;
    gid_t gid;
  };

  Mps(EventLoop& loop, Setting setting);
  // Preconditions: no seat is left.
  ~Mps();
  Mps(const Mps&) = delete;
  Mps& operator=(const Mps&) = delete;

  struct Member {
    std::string gpu;  // a UUID
    std::string vm;
    User user;
    bool goes_on = false;  // with workers of an earlier broker
  };
  // Starts its GPU's daemon where that does not run yet. Null where no daemon can serve the VM, and `error` is one
  // sentence.
  std::unique_ptr<MpsSeat> join(const Member& member, MpsSeat::Acts acts, std::string& error);
  // By what its clients reach the GPU's daemon: they are its clients for life.
  std::string pipe_of(const std::string& gpu) const;
  // Before the broker ends and the daemons go on.
  void leave();
  // Ends all daemons, and calls `done` once the last has gone.
  void end(std::function<void()> done);

 private:
  void let_go(pid_t worker, const std::function<void()>& then);

  EventLoop& loop_;
  const Setting setting_;
  MpsLeft left_;
  std::map<std::string, std::unique_ptr<MpsGpu>> gpus_;
};

}  // namespace host::broker
