// ivgpu-mps: the keeper, which runs a GPU's MPS control daemon for successive brokers (docs/design/034-restart.md). The
// daemon is its child, and knows no broker. The keeper watches for brokers as a worker does
// (host/base/process/liveness_pipe.h). It ends the daemon when the grace period passes without a broker, or when all
// holders of the control socket's other end have closed it. It exits with the daemon and reports how that ended. It
// forwards SIGTERM; if it is killed, the kernel kills the daemon.
//
// Trust: it trusts its broker. The daemon gets none of its descriptors but the outputs.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "host/base/fd_message.h"
#include "host/base/process/liveness_pipe.h"
#include "ring/layout/process_start.h"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int control_fd = 3, life_fd = 4;
constexpr int exit_usage = 2, exit_not_run = 127;

// before_the_end: workers, which end for the same reason, go first. signal_patience: between SIGTERM and SIGKILL.
constexpr auto before_the_end = 2s, signal_patience = 2s;
constexpr int between_looks_ms = 50;

[[noreturn]] void become(char** command, pid_t supervisor) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != supervisor) _exit(exit_not_run);  // the keeper has ended
  execv(command[0], command);
  std::fprintf(stderr, "%s: %s\n", command[0], std::strerror(errno));
  _exit(exit_not_run);
}

class Supervisor {
 public:
  Supervisor(pid_t daemon, int signals, std::chrono::milliseconds outlive)
      : daemon_(daemon), signals_(signals), life_(life_fd, outlive) {}

  // Returns when the daemon has ended.
  void run() {
    while (!has_ended()) {
      pollfd fds[3] = {{signals_, POLLIN, 0}, {has_control_ ? control_fd : -1, POLLIN, 0}, life_.to_poll()};
      poll(fds, 3, unwanted_since_ ? between_looks_ms : life_.timeout_ms());
      if (fds[0].revents != 0) pass_signal_on();
      life_.found(fds[2].revents);
      if (fds[1].revents != 0) hear();
      end_where_unwanted();
    }
  }

 private:
  bool has_ended() const {
    int status = 0;
    const pid_t ended = waitpid(daemon_, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno != ECHILD)) return false;
    const std::string how = ended < 0             ? "ended, and how is not known"
                            : WIFSIGNALED(status) ? "was killed by signal " + std::to_string(WTERMSIG(status))
                                                  : "exited with code " + std::to_string(WEXITSTATUS(status));
    host::broker::send_now(control_fd, how.data(), how.size());  // the next broker may read it
    return true;
  }
  void pass_signal_on() const {
    signalfd_siginfo info;
    if (read(signals_, &info, sizeof info) == sizeof info && info.ssi_signo == SIGTERM) kill(daemon_, SIGTERM);
  }
  void hear() {
    host::worker::MemoryMessage message{};
    const ssize_t length = life_.receive(control_fd, message);
    has_control_ = length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR));
  }
  void end_where_unwanted() {
    if (has_control_ && !life_.is_over()) return unwanted_since_.reset();
    if (!unwanted_since_) unwanted_since_ = Clock::now();
    const auto waited = Clock::now() - *unwanted_since_;
    if (waited >= before_the_end + signal_patience) {
      kill(daemon_, SIGKILL);
    } else if (waited >= before_the_end && !asked_) {
      asked_ = true;
      kill(daemon_, SIGTERM);
    }
  }

  const pid_t daemon_;
  const int signals_;
  host::worker::LivenessPipe life_;
  bool has_control_ = true, asked_ = false;
  std::optional<Clock::time_point> unwanted_since_;
};

int usage() {
  std::fputs(
      "ivgpu-mps: takes milliseconds, a priority, and a program with its arguments; ivgpud starts it, nobody else\n",
      stderr);
  return exit_usage;
}

}  // namespace

int main(int argc, char** argv) {
  ring::start_process();
  if (argc < 4 || fcntl(control_fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(life_fd, F_SETFD, FD_CLOEXEC) != 0)
    return usage();
  const std::chrono::milliseconds outlive(std::atoi(argv[1]));
  setpriority(PRIO_PROCESS, 0, std::atoi(argv[2]));
  sigset_t ours;
  sigemptyset(&ours);
  for (const int number : {SIGCHLD, SIGTERM}) sigaddset(&ours, number);
  sigprocmask(SIG_BLOCK, &ours, nullptr);
  const int signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
  const pid_t supervisor = getpid(), daemon = signals >= 0 ? fork() : -1;
  if (daemon == 0) become(argv + 3, supervisor);
  if (daemon < 0) {
    std::fprintf(stderr, "%s: %s\n", argv[3], std::strerror(errno));
    return EXIT_FAILURE;
  }
  Supervisor(daemon, signals, outlive).run();
  return EXIT_SUCCESS;
}
