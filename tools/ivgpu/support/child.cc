// fork and exec rather than posix_spawn, since the child must set its parent-death signal in between.
#include "tools/ivgpu/support/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/user_signals.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

int code_of(int status) {
  return WIFSIGNALED(status) ? exit_code::signal_base + WTERMSIG(status) : WEXITSTATUS(status);
}

// Becomes the command. Runs in the child, between fork and exec.
[[noreturn]] void become(const Command& command, const std::vector<char*>& argv, pid_t parent, int report) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(exit_code::missing);  // the parent died before prctl
  if (command.own_group) setpgid(0, 0);
  command.is_users_program ? take_user_signals() : take_default_signals();
  // Our helpers inherit the placeholders for closed standard descriptors. The user's program finds them closed.
  for (int fd = 0; fd < 3 && !command.is_users_program; ++fd) fcntl(fd, F_SETFD, 0);
  for (const std::string& name : command.without) unsetenv(name.c_str());
  for (const auto& [name, value] : command.environment) setenv(name.c_str(), value.c_str(), 1);
  const std::array<int, 3> standard = {command.in, command.out, command.err};
  for (int i = 0; i < 3; ++i)
    if (standard[static_cast<std::size_t>(i)] >= 0) dup2(standard[static_cast<std::size_t>(i)], i);
  for (const int fd : command.keep) fcntl(fd, F_SETFD, 0);
  execvp(argv[0], argv.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(report, &error, sizeof error);
  _exit(exit_code::not_found);
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

FdPair make_pipe_to_us() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) fail("pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

FdPair make_pipe_from_us() {
  FdPair pair = make_pipe_to_us();
  std::swap(pair.ours, pair.theirs);
  return pair;
}

FdPair make_socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) fail("socketpair");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {Fd(ends[0]), Fd(ends[1])};
}

Child::Child(const Command& command) {
  std::vector<char*> argv;
  for (const std::string& word : command.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  note_user_signals();

  FdPair report = make_pipe_to_us();  // a successful exec closes it; a failed exec writes errno
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) fail("fork");
  if (pid_ == 0) become(command, argv, parent, report.theirs.get());
  pidfd_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));

  report.theirs.reset();
  int error = 0;
  if (read(report.ours.get(), &error, sizeof error) == sizeof error) {
    wait();
    throw Error(error == ENOENT ? exit_code::not_found : exit_code::not_executable,
                "cannot run " + command.argv[0] + ": " + std::strerror(error));
  }
  if (!pidfd_) fail("pidfd_open");
}

Child::~Child() {
  if (pid_ <= 0 || code_) return;
  signal(SIGKILL);
  wait();
}

void Child::signal(int number) const {
  if (!code_) kill(pid_, number);
}

// ECHILD: the process has ended, and the kernel kept no exit status.
int Child::wait() {
  int status = 0;
  while (!code_) {
    if (waitpid(pid_, &status, 0) == pid_)
      code_ = code_of(status);
    else if (errno != EINTR)
      code_ = exit_code::lost;
  }
  return *code_;
}

std::optional<int> Child::wait_for(std::chrono::milliseconds patience) {
  pollfd ended{pidfd_.get(), POLLIN, 0};
  int ready = code_ ? 1 : -1;
  while (ready < 0) {
    ready = poll(&ended, 1, static_cast<int>(patience.count()));
    if (ready < 0 && errno != EINTR) fail("poll");
  }
  if (ready == 0) return std::nullopt;
  return wait();
}

SignalGate::SignalGate() {
  note_user_signals();
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&wanted, number);
  sigprocmask(SIG_BLOCK, &wanted, &before_);
  fd_ = Fd(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) fail("signalfd");
  pipe_before_ = std::signal(SIGPIPE, SIG_IGN);
}

SignalGate::~SignalGate() {
  std::signal(SIGPIPE, pipe_before_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

// A blocked signal arrives even if it is ignored.
std::optional<SignalGate::Arrived> SignalGate::take() const {
  for (;;) {
    const auto arrived = take_for_program();
    if (!arrived || !is_ignored(arrived->number)) return arrived;
  }
}

std::optional<SignalGate::Arrived> SignalGate::take_for_program() const {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  // When a terminal closes, the kernel signals only the session leader, which is ivgpu under `ssh -t`.
  return Arrived{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL && info.ssi_signo != SIGHUP};
}

int wait_passing_signals(Child& child, const SignalGate& gate) {
  std::array<pollfd, 2> events = {pollfd{child.pidfd(), POLLIN, 0}, pollfd{gate.fd(), POLLIN, 0}};
  while (true) {
    if (poll(events.data(), events.size(), -1) < 0 && errno != EINTR) fail("poll");
    if (events[0].revents) return child.wait();
    if (const auto arrived = gate.take_for_program(); arrived && !arrived->from_terminal) child.signal(arrived->number);
  }
}

std::string prepend_path(const char* variable, const fs::path& folder) {
  const char* now = std::getenv(variable);
  return now && *now ? folder.string() + ":" + now : folder.string();
}

}  // namespace ivgpu
