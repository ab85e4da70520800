#include "host/broker/worker/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "host/base/hostile_text.h"
#include "host/base/process/child_setup.h"
#include "host/base/process/pidfd.h"

namespace host::broker {
namespace {

// The child's descriptors, from 3 on. Some workers lack some of them.
constexpr int child_control = 3, child_region = 4, child_doorbell = 5, child_telemetry = 6, child_group = 7,
              child_orders = 8, child_use = 9, child_scheduler_doorbell = 10, child_interrupt = 11, child_life = 12,
              child_first_free = 13;

const char* meaning(int code) {
  switch (code) {
    case worker::exit_ended: return "ended";
    case worker::exit_usage: return "bad options";
    case worker::exit_protocol_broken: return "its guest broke the protocol";
    case worker::exit_driver_failed: return "the driver failed to start";
    case worker::exit_jail_missing: return "the jail is incomplete";
    case worker::exit_region_failed: return "the slot could not be mapped";
    case worker::exit_place_failed: return "its control group could not be entered";
    default: return "unexpected";
  }
}

std::string how_it_ended(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED)
    return fmt::format("exited with code {} ({})", info.si_status, meaning(info.si_status));
  const char* name = sigabbrev_np(info.si_status);
  return fmt::format("was killed by signal {} ({})", info.si_status, name != nullptr ? name : "?");
}

WorkerProcess::End kind_of_end(const siginfo_t& info, bool killed) {
  using End = WorkerProcess::End;
  if (info.si_code != CLD_EXITED) return killed && info.si_status == SIGKILL ? End::KilledByBroker : End::Signal;
  if (info.si_status == worker::exit_ended) return End::Orderly;
  return info.si_status == worker::exit_protocol_broken ? End::ProtocolBroken : End::OtherCode;
}

}  // namespace

WorkerProcess::WorkerProcess(EventLoop& loop, WorkerLog& log, std::string label, Events events)
    : loop_(loop), label_(std::move(label)), events_(std::move(events)), log_(log) {}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(EventLoop& loop, const WorkerCommand& command,
                                                            std::string label, Events events) {
  std::unique_ptr<WorkerProcess> process(new WorkerProcess(loop, *command.log, std::move(label), std::move(events)));
  if (const auto spawned = process->spawn(command); !spawned) return spawned.error();
  process->watch_all();
  return process;
}

Result<void> WorkerProcess::spawn(const WorkerCommand& command) {
  const auto failure = [](const char* what) {
    return Error{fmt::format("a worker cannot be started: {}: {}", what, std::strerror(errno))};
  };
  int sockets[2], pipes[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return failure("socketpair");
  make_control(Fd(sockets[0]), false);
  const Fd child_end(sockets[1]);
  if (pipe2(pipes, O_CLOEXEC) != 0) return failure("pipe");
  make_output(Fd(pipes[0]));
  const Fd child_output(pipes[1]);
  fcntl(pipes[0], F_SETFL, O_NONBLOCK);

  std::vector<std::string> arguments = {command.program};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  ChildSetup child(child_first_free);
  for (const int number : {STDOUT_FILENO, STDERR_FILENO}) child.pass(child_output.get(), number);
  struct Passed {
    const char* option;
    int fd, number;
  };
  for (const Passed& p : {Passed{"--control-fd", child_end.get(), child_control},
                          {"--region-fd", command.region_fd, child_region},
                          {"--doorbell-fd", command.doorbell_fd, child_doorbell},
                          {"--interrupt-fd", command.interrupt_fd, child_interrupt},
                          {"--telemetry-fd", command.telemetry_fd, child_telemetry},
                          {"--group-fd", command.group_entrance, child_group},
                          {"--orders-fd", command.orders_fd, child_orders},
                          {"--use-fd", command.use_fd, child_use},
                          {"--scheduler-doorbell-fd", command.scheduler_doorbell_fd, child_scheduler_doorbell},
                          {"--life-fd", command.life_fd, child_life}}) {
    child.pass(p.fd, p.number);
    if (p.fd >= 0) arguments.insert(arguments.end(), {p.option, std::to_string(p.number)});
  }
  arguments.insert(arguments.end(), {"--nice", std::to_string(command.priority)});
  errno = child.start(pid_, arguments, command.environment);
  if (errno != 0) return failure(command.program.c_str());
  // on_exit() reaps the child, so its process ID is still valid here.
  process_ = open_process(pid_);
  if (process_) return {};
  const int why = errno;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  reaped_ = true;
  errno = why;
  return failure("pidfd_open");
}

std::unique_ptr<WorkerProcess> WorkerProcess::adopt(EventLoop& loop, Kept kept, pid_t process, int life_fd,
                                                    WorkerLog& log, std::string label, Events events) {
  std::unique_ptr<WorkerProcess> adopted(new WorkerProcess(loop, log, std::move(label), std::move(events)));
  adopted->pid_ = process;
  adopted->is_child_ = false;
  adopted->make_control(std::move(kept.control), true);
  adopted->make_output(std::move(kept.output));
  adopted->process_ = std::move(kept.process);
  if (!adopted->control_->adopt(life_fd)) return nullptr;
  adopted->watch_all();
  return adopted;
}

void WorkerProcess::make_control(Fd socket, bool is_ready) {
  control_ = std::make_unique<WorkerControl>(
      loop_, std::move(socket), is_ready,
      WorkerControl::Events{.ready = [this](const worker::ReadyMessage& message) { on_ready(message); },
                            .listener = events_.listener,
                            .memory = events_.memory,
                            .broken = [this] { kill_now("it said something that no worker says"); }});
}

void WorkerProcess::make_output(Fd pipe) {
  output_ = std::make_unique<WorkerOutput>(loop_, std::move(pipe), label_, log_);
}

void WorkerProcess::on_ready(const worker::ReadyMessage& message) const {
  events_.ready({message.layers, escaped(message.text), message});
}

// Signals by pidfd: the process ID of a process that is no child may have been reused.
void WorkerProcess::send_kill() const { send_signal(process_.get(), SIGKILL); }

void WorkerProcess::watch_all() {
  control_->watch();
  output_->watch();
  exit_watch_ = loop_.watch(process_.get(), POLLIN, [this](short) { on_exit(); });
}

WorkerProcess::~WorkerProcess() {
  loop_.forget(exit_watch_);
  loop_.forget(kill_timer_);
  if (pid_ <= 0 || reaped_) return;
  send_kill();
  if (is_child_) waitpid(pid_, nullptr, 0);
}

void WorkerProcess::end(Clock::duration patience) {
  asked_ = true;
  if (control_) control_->shut();
  if (kill_timer_ == 0) kill_timer_ = loop_.after(patience, [this] { kill_now("it did not end when asked to"); });
}

void WorkerProcess::kill_now(const char* why) {
  if (std::exchange(killed_, true)) return;
  if (const auto more = log_.kills.admit()) spdlog::warn("{}: killed: {}{}", label_, why, *more);
  loop_.forget(kill_timer_);
  if (control_) control_->stop_reading();
  if (!events_.before_kill) return send_kill();
  events_.before_kill([this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired() && !reaped_) send_kill();
  });
}

WorkerProcess::Exit WorkerProcess::exit_of(const siginfo_t& info) const {
  return {kind_of_end(info, killed_), pid_, info.si_status, how_it_ended(info), output_->last_words()};
}

// The kernel does not tell how a process ended that is no child, or a child whose status it has not kept.
WorkerProcess::Exit WorkerProcess::unknown_exit() const {
  const End end = killed_ ? End::KilledByBroker : asked_ ? End::Orderly : End::OtherCode;
  std::string how = killed_ ? "was killed" : "ended, and how is not known";
  if (!killed_ && !is_child_) how += ": another ivgpud has started it";
  return {end, pid_, 0, std::move(how), output_->last_words(), false};
}

void WorkerProcess::on_exit() {
  siginfo_t info{};
  const bool answered = is_child_ && waitid(P_PIDFD, static_cast<id_t>(process_.get()), &info, WEXITED | WNOHANG) == 0;
  if (answered && info.si_pid == 0) return;  // still running
  reaped_ = true;
  loop_.forget(exit_watch_);
  loop_.forget(kill_timer_);
  if (control_) control_->stop_reading();
  if (output_) output_->finish();
  const Exit exit = answered ? exit_of(info) : unknown_exit();
  const auto gone = events_.gone;  // a copy: the callee may destroy this object
  gone(exit);
}

}  // namespace host::broker
