// A program of this machine that the broker runs beside itself and believes, as NVIDIA's MPS control: it gets a text as
// its input, the beginning of its output is kept, and its end is reported. One that an earlier broker has started is gone on
// with (docs/design/034-restart.md): its end shows as well, and how it ended nobody tells.
//
// Threads: the broker's one. Nothing here waits for the program.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/fd.h"

namespace host::broker {

class Helper {
 public:
  struct Command {
    std::vector<std::string> arguments;    // the first is the program's path
    std::vector<std::string> environment;  // NAME=value, all of it
    std::string input;                     // longest_input bytes at most
    int priority = 0;                      // as nice(1) counts
    std::vector<int> passed = {};          // open there as 3, 4, and so on; they stay the caller's
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
  // One that runs already: its output and its pidfd.
  static std::unique_ptr<Helper> adopt(EventLoop& loop, Fd output, Fd process, Gone gone);
  // Kills it if it still runs, without waiting for it; `gone` is not called any more.
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  void signal(int number) const;
  // It ends by itself, and nobody is told.
  void leave() { reaped_ = true; }
  int output_fd() const { return output_.get(); }
  int process_fd() const { return process_.get(); }

 private:
  Helper(EventLoop& loop, Gone gone) : loop_(loop), gone_(std::move(gone)) {}
  bool spawn(const Command& command, std::string& error);
  void watch_all();
  void read_output();
  void on_exit();

  EventLoop& loop_;
  Gone gone_;
  Fd output_, process_;
  pid_t pid_ = -1;  // of one that is no child it is not known
  EventLoop::Id output_watch_ = 0, exit_watch_ = 0;
  std::string kept_;
  bool reaped_ = false;
};

// The first line of what a helper says, fit for a log, behind a colon; "" where it says nothing.
std::string first_words(const std::string& output);

}  // namespace host::broker
