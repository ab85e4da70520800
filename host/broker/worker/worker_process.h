// One worker as the broker sees it: a process, its control socket, and the pipe of its output.
//
// Trust: a worker may be controlled by its guest. Its messages are checked byte by byte and read so often and no oftener,
// its text is escaped, bounded and rate-limited, descriptors that it might pass are refused, but for one beside its first
// message where `listener` takes that, and no text of it can do more than end it.
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
#include "host/base/hostile_text.h"
#include "host/base/log_limiter.h"
#include "host/base/process/control.h"
#include "host/base/rate.h"
#include "host/broker/worker/worker_message.h"

namespace host::broker {

// The share of the log for all workers of a VM: a guest can make its workers write, and die, without end.
struct WorkerLog {
  static constexpr int lines_per_second = 50, burst = 100;
  TokenBucket lines{lines_per_second, burst, Clock::now()};
  LogLimiter kills;
};

struct WorkerCommand {
  std::string program;
  std::vector<std::string> arguments;    // after the program's name; the descriptors' numbers are added
  std::vector<std::string> environment;  // NAME=value, all of it
  int region_fd = -1;                    // passed on, stays the caller's
  int doorbell_fd = -1;
  int interrupt_fd = -1;  // interrupts its guest; -1: nothing does
  int telemetry_fd = -1;
  int orders_fd = -1, use_fd = -1, bell_fd = -1;  // of GPU time (ring/ops/gpu_use.h); -1: nobody schedules it
  int priority = 0;                               // as nice(1) counts; the broker's own may be another
  int life_fd = -1;                               // ends with the broker, and so does the worker; -1: it is killed then
  int group_entrance = -1;  // of the control group that it goes into; -1: it stays in the broker's
  WorkerLog* log;           // outlives the worker
};

class WorkerProcess {
 public:
  enum class End {
    Orderly,         // exit code 0
    ProtocolBroken,  // by its guest, by its own account
    KilledByBroker,  // by kill_now()
    Signal,          // that the broker has not sent: a fault, an assertion, the jail, the kernel short of memory
    OtherCode,
  };
  struct Exit {
    End end = End::OtherCode;
    pid_t worker = 0;
    int number = 0;   // of the signal, or the exit code
    std::string how;  // "exited with code 4 (driver failed)", "was killed by signal 9"
    std::string last_words;
    bool is_known = true;  // how it ended; of one that another broker has started it is not
  };
  // Its message when it was ready; the text is escaped.
  struct Ready {
    std::uint32_t layers = 0;  // bits of jail::Layer
    std::string text;
    worker::ReadyMessage message;
  };
  struct Events {
    std::function<void(const Ready&)> ready;
    // Before `ready`: what it has passed then, which may be any descriptor. Null: it may pass none.
    std::function<void(Fd)> listener = {};
    // What it says about device memory. False: no worker says that. Null: none does.
    std::function<bool(const worker::MemoryMessage&)> memory;
    std::function<void(const Exit&)> gone;  // the last call; the object may be destroyed in it
    // Called before it is killed, but for the destructor's doing; it dies once `then` is called, whenever that is. Null:
    // it is killed at once.
    std::function<void(std::function<void()> then)> before_kill = {};
  };

  // What the next broker needs of it.
  struct Kept {
    Fd control, output, process;
  };

  // Null when no process could be made, and `error` is one sentence. `label` begins each line of its log.
  static std::unique_ptr<WorkerProcess> start(EventLoop& loop, const WorkerCommand& command, std::string label,
                                              Events events, std::string& error);
  // One that an earlier broker has started, and that was ready then; `life_fd` is passed to it. Its exit code is another
  // process's to know: it counts as orderly where the broker has asked for it. Null on failure; it is killed then.
  static std::unique_ptr<WorkerProcess> adopt(EventLoop& loop, Kept kept, pid_t process, int life_fd, WorkerLog& log,
                                              std::string label, Events events);
  // Kills it if it still runs; `gone` is not called any more.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Asks it to end by closing its socket, and kills it when it has not after `patience`.
  void end(Clock::duration patience);
  void kill_now(const char* why);  // once; later ones do nothing
  bool is_killed() const { return killed_; }
  // False: it does not read, or has gone.
  bool send(const worker::MemoryMessage& message) const;
  pid_t pid() const { return pid_; }
  int control_fd() const { return control_.get(); }
  int output_fd() const { return output_.get(); }
  int process_fd() const { return process_.get(); }

 private:
  WorkerProcess(EventLoop& loop, std::string label, Events events);
  bool spawn(const WorkerCommand& command, std::string& error);
  void watch_all();
  bool tell_adopted(int life_fd) const;
  void send_kill() const;
  Exit exit_of(const siginfo_t& info) const;
  Exit unknown_exit() const;
  void on_control();
  bool on_message(const void* bytes, std::size_t length, int flags, Fd beside);
  void pause_control(Clock::duration pause);
  void on_output();
  void on_exit();
  void read_output(std::size_t budget);
  void log_line(const std::string& line);
  void pause_output();

  EventLoop& loop_;
  const std::string label_;
  Events events_;
  Fd control_, output_, process_;
  pid_t pid_ = -1;
  EventLoop::Id control_watch_ = 0, output_watch_ = 0, exit_watch_ = 0, kill_timer_ = 0, output_timer_ = 0,
                control_timer_ = 0;
  LineCutter lines_;
  std::string last_words_;
  int lines_left_, lines_left_out_ = 0;
  // What it says costs the broker time: a few microseconds for each message.
  static constexpr int messages_per_second = 200, message_burst = 100;
  TokenBucket messages_{messages_per_second, message_burst, Clock::now()};
  WorkerLog* log_ = nullptr;
  bool ready_ = false, killed_ = false, reaped_ = false;
  bool is_child_ = true, asked_ = false;                              // it was asked to end
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what outlives this object
};

}  // namespace host::broker
