// Child processes and their descriptors: start a child, wait for it, and pass on signals. All descriptors of ivgpu are
// close-on-exec; a child gets only those that its Command names.
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

// Owns a descriptor.
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
  std::vector<std::pair<std::string, std::string>> environment = {};  // variables to add to our environment
  // variables of our environment that the child does not get
  std::vector<std::string> without = {};
  std::vector<int> keep = {};       // descriptors to inherit under the same numbers
  int in = -1, out = -1, err = -1;  // the child's descriptors 0, 1 and 2; -1: ours
  bool own_group = false;           // protects the child from the terminal's Ctrl-C
  bool is_users_program = false;    // inherits the signals that the user ignores and blocks
};

// A started child. Its destructor kills it, and so does the kernel when ivgpu dies.
class Child {
 public:
  explicit Child(const Command& command);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable once the child has ended
  void signal(int number) const;
  // Blocks and returns the exit code, 128 + n after signal n, or exit_code::lost if the kernel reports none.
  int wait();
  // Same as wait(), but nullopt if the child still runs after `patience`.
  std::optional<int> wait_for(std::chrono::milliseconds patience);

 private:
  pid_t pid_ = -1;
  Fd pidfd_;
  std::optional<int> code_;
};

// While a SignalGate exists, SIGINT, SIGTERM, SIGHUP and SIGQUIT arrive at a descriptor, and a write to a broken pipe
// fails instead of raising SIGPIPE. ivgpu can therefore end its children before it ends. Create a SignalGate before the
// first Child; children start with the original signals.
class SignalGate {
 public:
  SignalGate();
  ~SignalGate();
  int fd() const { return fd_.get(); }
  struct Arrived {
    int number;
    bool from_terminal;  // the terminal sent the signal to the whole foreground group, including the child
  };
  // The next signal for ivgpu itself. Skips signals that the user ignores.
  std::optional<Arrived> take() const;
  // The next signal for the program. The program may handle signals that the user ignores.
  std::optional<Arrived> take_for_program() const;

 private:
  sigset_t before_;
  sighandler_t pipe_before_ = SIG_DFL;
  Fd fd_;
};

// Waits for a foreground child, passes signals on to it, and returns its exit code.
int wait_passing_signals(Child& child, const SignalGate& gate);

// `folder` prepended to the variable's value, as for LD_LIBRARY_PATH.
std::string prepend_path(const char* variable, const std::filesystem::path& folder);

}  // namespace ivgpu
