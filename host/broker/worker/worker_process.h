// A worker as the broker sees it: a process, its control socket (worker_control.h), and the pipe of its output
// (worker_output.h).
//
// Trust: a guest may control the worker. No message of its can do more than end it.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/process/control.h"
#include "host/base/result.h"
#include "host/broker/worker/worker_control.h"
#include "host/broker/worker/worker_output.h"

namespace host::broker {

struct WorkerCommand {
  std::string program;
  std::vector<std::string> arguments;    // after the program's name; descriptor numbers are appended
  std::vector<std::string> environment;  // complete, NAME=value
  int region_fd = -1;                    // passed on; the caller keeps it
  int doorbell_fd = -1;
  int interrupt_fd = -1;  // interrupts the guest; -1: none
  int telemetry_fd = -1;
  int orders_fd = -1, use_fd = -1, scheduler_doorbell_fd = -1;  // GPU time (ring/ops/gpu_use.h); -1: not scheduled
  int priority = 0;                                             // nice value; the broker's own may differ
  int life_fd = -1;         // closes when the broker ends, and the worker ends; -1: the kernel kills the worker
  int group_entrance = -1;  // of the control group to join; -1: it stays in the broker's
  WorkerLog* log;           // must outlive the worker
};

class WorkerProcess {
 public:
  enum class End {
    Orderly,         // exit code 0
    ProtocolBroken,  // its guest broke the protocol, as the worker reports
    KilledByBroker,  // by kill_now()
    Signal,          // not sent by the broker: a fault, an assertion, the jail, or lack of memory
    OtherCode,
  };
  struct Exit {
    End end = End::OtherCode;
    pid_t worker = 0;
    int number = 0;   // signal number or exit code
    std::string how;  // "exited with code 4 (driver failed)", "was killed by signal 9"
    std::string last_words;
    bool is_known = true;  // false for a worker of another broker, whose exit status is unknown
  };
  // The ready message; its text is escaped.
  struct Ready {
    std::uint32_t layers = 0;  // bits of jail::Layer
    std::string text;
    worker::ReadyMessage message;
  };
  struct Events {
    std::function<void(const Ready&)> ready;
    // Called before `ready` with the descriptor that it passed, which may be any. Null: it may pass none.
    std::function<void(Fd)> listener = {};
    // A message about device memory. Returns false if it breaks the protocol. Null: none is allowed.
    std::function<bool(const worker::MemoryMessage&)> memory;
    std::function<void(const Exit&)> gone;  // the last call; it may destroy the object
    // Called before the worker is killed, except by the destructor; it is killed when `then` is called. Null: it is
    // killed at once.
    std::function<void(std::function<void()> then)> before_kill = {};
  };

  // Descriptors that the next broker needs.
  struct Kept {
    Fd control, output, process;
  };

  // An error, one sentence, if no process could be made. `label` begins each line of its log.
  static Result<std::unique_ptr<WorkerProcess>> start(EventLoop& loop, const WorkerCommand& command, std::string label,
                                                      Events events);
  // Takes over an earlier broker's worker that was ready; `life_fd` is sent to it. Its exit status will be unknown and
  // counts as orderly if this broker has asked for the end. Null on failure; the worker is then killed.
  [[nodiscard]] static std::unique_ptr<WorkerProcess> adopt(EventLoop& loop, Kept kept, pid_t process, int life_fd,
                                                            WorkerLog& log, std::string label, Events events);
  // Kills the worker if it still runs; `gone` is not called any more.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Asks the worker to end by closing its socket, and kills it after `patience`.
  void end(Clock::duration patience);
  void kill_now(const char* why);  // only the first call counts
  bool is_killed() const { return killed_; }
  // False if the worker does not read, or has gone.
  [[nodiscard]] bool send(const worker::MemoryMessage& message) const { return control_ && control_->send(message); }
  pid_t pid() const { return pid_; }
  int control_fd() const { return control_ ? control_->fd() : -1; }
  int output_fd() const { return output_ ? output_->fd() : -1; }
  int process_fd() const { return process_.get(); }

 private:
  WorkerProcess(EventLoop& loop, WorkerLog& log, std::string label, Events events);
  Result<void> spawn(const WorkerCommand& command);
  void watch_all();
  void make_control(Fd socket, bool is_ready);
  void make_output(Fd pipe);
  void send_kill() const;
  Exit exit_of(const siginfo_t& info) const;
  Exit unknown_exit() const;
  void on_ready(const worker::ReadyMessage& message) const;
  void on_exit();

  EventLoop& loop_;
  const std::string label_;
  const Events events_;
  WorkerLog& log_;
  std::unique_ptr<WorkerControl> control_;
  std::unique_ptr<WorkerOutput> output_;
  Fd process_;
  pid_t pid_ = -1;
  EventLoop::Id exit_watch_ = 0, kill_timer_ = 0;
  bool killed_ = false, reaped_ = false;
  bool is_child_ = true, asked_ = false;                              // asked_: it was asked to end
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for callbacks that outlive this object
};

}  // namespace host::broker
