// Workers under MPS that an earlier broker has left and that this one does not go on with, as those of a VM that is in the
// file no more. Their control sockets have ended, so they are about to end. One that does not is let go of by its server
// before it is killed, since it would take the other clients of its GPU with it (docs/design/031-mps.md).
//
// Threads: the broker's one; nothing here waits.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>

#include "host/base/event_loop.h"
#include "host/base/fd.h"

namespace host::broker {

class MpsLeft {
 public:
  // Has whichever server has this client let go of it, then calls `then`.
  using LetGo = std::function<void(pid_t worker, std::function<void()> then)>;

  MpsLeft(EventLoop& loop, LetGo let_go) : loop_(loop), let_go_(std::move(let_go)) {}
  ~MpsLeft() { kill_all(); }
  MpsLeft(const MpsLeft&) = delete;
  MpsLeft& operator=(const MpsLeft&) = delete;

  // `process`: a pidfd.
  void end(Fd process);
  void kill_all();

 private:
  struct Worker {
    Fd process;
    EventLoop::Id exit_watch = 0, timer = 0;
  };
  void let_go(std::uint64_t number);
  void drop(std::uint64_t number);

  EventLoop& loop_;
  const LetGo let_go_;
  std::map<std::uint64_t, Worker> workers_;
  std::uint64_t next_ = 0;
};

}  // namespace host::broker
