// Ends MPS workers that an earlier broker left and this one does not adopt, as those of a VM removed from the file.
// Their control sockets are closed, so they should exit. If one does not, its server releases it before it is killed;
// otherwise it would end the other clients of its GPU (docs/design/031-mps.md).
//
// Threads: the broker's event loop only; nothing here blocks.
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
  // Has the server of this client release it, then calls `then`.
  using LetGo = std::function<void(pid_t worker, std::function<void()> then)>;

  MpsLeft(EventLoop& loop, LetGo let_go) : loop_(loop), let_go_(std::move(let_go)) {}
  ~MpsLeft() { kill_all(); }
  MpsLeft(const MpsLeft&) = delete;
  MpsLeft& operator=(const MpsLeft&) = delete;

  // `process`: pidfd of the worker.
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
