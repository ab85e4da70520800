// A program of this machine that the broker runs beside itself and believes, as NVIDIA's MPS control: it gets a text as
// its input, the beginning of its output is kept, and its end is reported.
//
// Threads: the broker's one. Nothing here waits for the program.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/broker/event_loop.h"
#include "host/broker/fd.h"

namespace host::broker {

class Helper {
 public:
  struct Command {
    std::vector<std::string> arguments;    // the first is the program's path
    std::vector<std::string> environment;  // NAME=value, all of it
    std::string input;                     // longest_input bytes at most
    int priority = 0;                      // as nice(1) counts
  };
  struct Exit {
    bool good = false;   // exit code 0
    std::string how;     // "exited with code 1", "was killed by signal 9"
    std::string output;  // both outputs, longest_output bytes at most
  };
  using Gone = std::function<void(const Exit&)>;
  static constexpr std::size_t longest_input = 2048;  // a pipe takes it without a reader
  static constexpr std::size_t longest_output = 4096;

  // Null when no process could be made, and `error` is one sentence. `gone` is the last call, never made in start() or
  // signal(); the object may be destroyed in it.
  static std::unique_ptr<Helper> start(EventLoop& loop, const Command& command, Gone gone, std::string& error);
  // Kills it if it still runs, without waiting for it; `gone` is not called any more.
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  void signal(int number) const;
  pid_t pid() const { return pid_; }
  const std::string& output() const { return kept_; }

 private:
  Helper(EventLoop& loop, Gone gone) : loop_(loop), gone_(std::move(gone)) {}
  bool spawn(const Command& command, std::string& error);
  void read_output();
  void on_exit();

  EventLoop& loop_;
  Gone gone_;
  Fd output_, process_;
  pid_t pid_ = -1;
  EventLoop::Id output_watch_ = 0, exit_watch_ = 0;
  std::string kept_;
  bool reaped_ = false;
};

// The first line of what a helper says, fit for a log, behind a colon; "" where it says nothing.
std::string first_words(const std::string& output);

}  // namespace host::broker
