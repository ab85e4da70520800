// Child processes: start one, wait for it with the caller's signals passed on, and the descriptors that go with it.
// Every descriptor of ivgpu is close-on-exec; a child gets exactly those that are named for it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ivgpu {

// A descriptor that closes itself.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

struct FdPair {
  Fd ours;
  Fd theirs;
};
FdPair make_pipe_to_us();    // ours reads, theirs writes
FdPair make_pipe_from_us();  // ours writes, theirs reads
FdPair make_socket_pair();   // both ways, ours is non-blocking

struct Command {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> environment = {};  // added to ours
  std::vector<std::string> without = {};                              // of ours, not handed on
  std::vector<int> keep = {};       // descriptors that stay open, under their own numbers
  int in = -1, out = -1, err = -1;  // descriptors to become 0, 1 and 2; -1: ours
  bool own_group = false;           // away from the terminal's Ctrl-C
  bool is_users_program = false;    // inherits the signals that the user ignores and blocks
};

// A started child. It is killed when its Child goes, or when ivgpu itself dies.
class Child {
 public:
  explicit Child(const Command& command);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable once the child has ended
  void signal(int number) const;
  // The exit code, 128 + n after signal n, exit_code::lost where the kernel does not tell it. Blocks.
  int wait();
  // The same, or nothing where it still runs after `patience`.
  std::optional<int> wait_for(std::chrono::milliseconds patience);

 private:
  pid_t pid_ = -1;
  Fd pidfd_;
  std::optional<int> code_;
};

// From here on, SIGINT, SIGTERM, SIGHUP and SIGQUIT arrive in a descriptor instead of ending ivgpu, and SIGPIPE is a
// write that fails, so that all started processes can be ended, too. One at a time, before the first Child; children
// start without this.
class SignalGate {
 public:
  SignalGate();
  ~SignalGate();
  int fd() const { return fd_.get(); }
  struct Arrived {
    int number;
    bool from_terminal;  // the terminal sent it to the whole foreground group, so a child there has it already
  };
  // The next signal for ivgpu itself. Skips those that the user ignores.
  std::optional<Arrived> take() const;
  // The next signal for the program. It may have a handler for one that the user ignores.
  std::optional<Arrived> take_for_program() const;

 private:
  sigset_t before_;
  sighandler_t pipe_before_ = SIG_DFL;
  Fd fd_;
};

// Waits for a foreground child, passes signals on to it, and returns its exit code.
int wait_passing_signals(Child& child, const SignalGate& gate);

// `folder` before the present value of the variable, for LD_LIBRARY_PATH.
std::string prepend_path(const char* variable, const std::filesystem::path& folder);

}  // namespace ivgpu
