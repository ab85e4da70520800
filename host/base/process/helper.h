// A trusted program that the broker runs beside itself, as NVIDIA's MPS control daemon. The broker writes its input,
// keeps the beginning of its output, and reports its exit. The broker can also adopt a helper that an earlier broker
// started (docs/design/034-restart.md); the exit status of an adopted helper is unknown.
//
// Threads: the broker's event loop only. Nothing here blocks on the program.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/result.h"

namespace host::broker {

class Helper {
 public:
  struct Command {
    std::vector<std::string> arguments;    // the first is the program's path
    std::vector<std::string> environment;  // complete, NAME=value
    std::string input;                     // at most longest_input bytes
    int priority = 0;                      // as nice(1) counts
    std::vector<int> passed = {};          // open in the child as 3, 4, ...; the caller keeps them
  };
  struct Exit {
    bool good = false;   // exit code 0
    std::string how;     // "exited with code 1", "was killed by signal 9"
    std::string output;  // stdout and stderr, at most longest_output bytes
  };
  using Gone = std::function<void(const Exit&)>;
  static constexpr std::size_t longest_input = 2048;  // fits into a pipe without a reader
  static constexpr std::size_t longest_output = 4096;

  // An error, one sentence, if no process could be made. `gone` is called once, last, and never within start() or
  // signal(); it may destroy the object.
  static Result<std::unique_ptr<Helper>> start(EventLoop& loop, const Command& command, Gone gone);
  // Takes over a running helper by its output pipe and pidfd.
  [[nodiscard]] static std::unique_ptr<Helper> adopt(EventLoop& loop, Fd output, Fd process, Gone gone);
  // Kills the helper if it still runs, without waiting for it; `gone` is not called any more.
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  void signal(int number) const;
  // Leaves the helper running: the destructor does not kill it, and `gone` is not called.
  void leave() { reaped_ = true; }
  int output_fd() const { return output_.get(); }
  int process_fd() const { return process_.get(); }

 private:
  Helper(EventLoop& loop, Gone gone) : loop_(loop), gone_(std::move(gone)) {}
  Result<void> spawn(const Command& command);
  void watch_all();
  void read_output();
  void on_exit();

  EventLoop& loop_;
  Gone gone_;
  Fd output_, process_;
  pid_t pid_ = -1;  // -1 for an adopted helper, which is no child
  EventLoop::Id output_watch_ = 0, exit_watch_ = 0;
  std::string kept_;
  bool reaped_ = false;
};

// The first line of a helper's output, escaped, after a colon; "" if there is none.
std::string first_words(const std::string& output);

}  // namespace host::broker
