#include "host/broker/worker/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "host/base/fd_message.h"
#include "host/base/process/child_setup.h"
#include "host/base/process/pidfd.h"

namespace host::broker {
namespace {

using worker::ReadyMessage;

// Enough for a driver's diagnostics, and too little to fill a disk or keep the broker busy.
constexpr int lines_per_second = 50;
constexpr std::size_t output_budget = 64 << 10;  // bytes read per wake-up: the capacity of a pipe

// The child's descriptors, from 3 on. Some workers lack some of them.
constexpr int child_control = 3, child_region = 4, child_doorbell = 5, child_telemetry = 6, child_group = 7,
              child_orders = 8, child_use = 9, child_bell = 10, child_interrupt = 11, child_life = 12,
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

WorkerProcess::WorkerProcess(EventLoop& loop, std::string label, Events events)
    : loop_(loop), label_(std::move(label)), events_(std::move(events)), lines_left_(lines_per_second) {}

std::unique_ptr<WorkerProcess> WorkerProcess::start(EventLoop& loop, const WorkerCommand& command, std::string label,
                                                    Events events, std::string& error) {
  std::unique_ptr<WorkerProcess> process(new WorkerProcess(loop, std::move(label), std::move(events)));
  process->log_ = command.log;
  if (!process->spawn(command, error)) return nullptr;
  process->watch_all();
  return process;
}

bool WorkerProcess::spawn(const WorkerCommand& command, std::string& error) {
  const auto fail = [&](const char* what) {
    error = fmt::format("a worker cannot be started: {}: {}", what, std::strerror(errno));
    return false;
  };
  int sockets[2], pipes[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return fail("socketpair");
  control_.reset(sockets[0]);
  const Fd child_end(sockets[1]);
  if (pipe2(pipes, O_CLOEXEC) != 0) return fail("pipe");
  output_.reset(pipes[0]);
  const Fd child_output(pipes[1]);
  fcntl(output_.get(), F_SETFL, O_NONBLOCK);

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
                          {"--bell-fd", command.bell_fd, child_bell},
                          {"--life-fd", command.life_fd, child_life}}) {
    child.pass(p.fd, p.number);
    if (p.fd >= 0) arguments.insert(arguments.end(), {p.option, std::to_string(p.number)});
  }
  arguments.insert(arguments.end(), {"--nice", std::to_string(command.priority)});
  errno = child.start(pid_, arguments, command.environment);
  if (errno != 0) return fail(command.program.c_str());
  // on_exit() reaps the child, so its process ID is still valid here.
  process_ = open_process(pid_);
  if (process_) return true;
  const int why = errno;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  reaped_ = true;
  errno = why;
  return fail("pidfd_open");
}

std::unique_ptr<WorkerProcess> WorkerProcess::adopt(EventLoop& loop, Kept kept, pid_t process, int life_fd,
                                                    WorkerLog& log, std::string label, Events events) {
  std::unique_ptr<WorkerProcess> adopted(new WorkerProcess(loop, std::move(label), std::move(events)));
  adopted->log_ = &log;
  adopted->pid_ = process;
  adopted->is_child_ = false;
  adopted->ready_ = true;
  adopted->control_ = std::move(kept.control);
  adopted->output_ = std::move(kept.output);
  adopted->process_ = std::move(kept.process);
  if (!adopted->tell_adopted(life_fd)) return nullptr;
  adopted->watch_all();
  return adopted;
}

// True even if the worker has ended; the loop sees that later.
bool WorkerProcess::tell_adopted(int life_fd) const {
  worker::MemoryMessage words{};
  words.kind = worker::adopt_kind;
  return send_with_fd(control_.get(), &words, sizeof words, life_fd) == sizeof words || errno == EPIPE ||
         errno == ECONNRESET;
}

// Signals by pidfd: the process ID of a process that is no child may have been reused.
void WorkerProcess::send_kill() const { send_signal(process_.get(), SIGKILL); }

void WorkerProcess::watch_all() {
  control_watch_ = loop_.watch(control_.get(), POLLIN, [this](short) { on_control(); });
  output_watch_ = loop_.watch(output_.get(), POLLIN, [this](short) { on_output(); });
  exit_watch_ = loop_.watch(process_.get(), POLLIN, [this](short) { on_exit(); });
}

WorkerProcess::~WorkerProcess() {
  for (EventLoop::Id* id :
       {&control_watch_, &output_watch_, &exit_watch_, &kill_timer_, &output_timer_, &control_timer_})
    loop_.forget(*id);
  if (pid_ <= 0 || reaped_) return;
  send_kill();
  if (is_child_) waitpid(pid_, nullptr, 0);
}

void WorkerProcess::end(Clock::duration patience) {
  asked_ = true;
  loop_.forget(control_watch_);
  loop_.forget(control_timer_);
  // Not just close(): a poll request in the kernel would keep the socket open.
  shutdown(control_.get(), SHUT_RDWR);
  if (kill_timer_ == 0) kill_timer_ = loop_.after(patience, [this] { kill_now("it did not end when asked to"); });
}

void WorkerProcess::kill_now(const char* why) {
  if (std::exchange(killed_, true)) return;
  if (const auto more = log_->kills.admit()) spdlog::warn("{}: killed: {}{}", label_, why, *more);
  loop_.forget(kill_timer_);
  loop_.forget(control_watch_);
  loop_.forget(control_timer_);
  if (!events_.before_kill) return send_kill();
  events_.before_kill([this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired() && !reaped_) send_kill();
  });
}

void WorkerProcess::on_control() {
  std::array<char, sizeof(ReadyMessage) + 1> bytes;
  iovec data{bytes.data(), bytes.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};  // no space for descriptors: the kernel discards those sent
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!ready_ && events_.listener) header.msg_control = room, header.msg_controllen = CMSG_LEN(sizeof(int));
  const ssize_t length = receive_now(control_.get(), header);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (length <= 0) {  // the worker is about to exit
    loop_.forget(control_watch_);
    return;
  }
  if (!on_message(bytes.data(), static_cast<std::size_t>(length), header.msg_flags, fd_beside(header)))
    return kill_now("it said something that no worker says");
  if (const auto pause = messages_.take(Clock::now()); pause != Span::zero() && control_watch_ != 0)
    pause_control(pause);
}

bool WorkerProcess::on_message(const void* bytes, std::size_t length, int flags, Fd beside) {
  if (ready_) {
    const auto message = parse_memory(bytes, length, flags);
    return message && events_.memory && events_.memory(*message);
  }
  const auto message = parse_ready(bytes, length, flags);
  if (!message) return false;
  ready_ = true;
  if (beside) events_.listener(std::move(beside));
  events_.ready({message->layers, escaped(message->text), *message});
  return true;
}

// Stops reading a worker that sends too much: its socket fills, and it blocks.
void WorkerProcess::pause_control(Clock::duration pause) {
  loop_.forget(control_watch_);
  control_timer_ = loop_.after(pause, [this] {
    control_timer_ = 0;
    control_watch_ = loop_.watch(control_.get(), POLLIN, [this](short) { on_control(); });
  });
}

bool WorkerProcess::send(const worker::MemoryMessage& message) const {
  return send_now(control_.get(), &message, sizeof message) == sizeof message;
}

// A worker has no share of the log left when its VM's share is used up. Lines already read are then dropped, except as
// last words.
void WorkerProcess::log_line(const std::string& line) {
  last_words_ = line;
  if (lines_left_ > 0 && log_->lines.take(Clock::now()) != Span::zero()) lines_left_ = 0;
  if (lines_left_ <= 0) return void(++lines_left_out_);
  --lines_left_;
  if (const auto n = std::exchange(lines_left_out_, 0); n != 0) spdlog::info("{}: ({} lines were left out)", label_, n);
  spdlog::info("{}: {}", label_, line);
}

void WorkerProcess::read_output(std::size_t budget) {
  std::array<char, 4096> bytes;
  while (budget > 0) {
    const ssize_t length = read(output_.get(), bytes.data(), std::min(bytes.size(), budget));
    if (length == 0) loop_.forget(output_watch_);
    if (length <= 0) return;
    budget -= static_cast<std::size_t>(length);
    for (const std::string& line : lines_.add({bytes.data(), static_cast<std::size_t>(length)})) log_line(line);
    if (lines_left_ <= 0) return;
  }
}

// Stops reading a worker that prints too much until the second is over: its pipe fills, and it blocks.
void WorkerProcess::pause_output() {
  loop_.forget(output_watch_);
  output_timer_ = loop_.after(std::chrono::seconds(1), [this] {
    output_timer_ = 0;
    lines_left_ = lines_per_second;
    output_watch_ = loop_.watch(output_.get(), POLLIN, [this](short) { on_output(); });
  });
}

void WorkerProcess::on_output() {
  if (output_timer_ == 0 && lines_left_ == lines_per_second) {
    output_timer_ = loop_.after(std::chrono::seconds(1), [this] {
      output_timer_ = 0;
      lines_left_ = lines_per_second;
    });
  }
  read_output(output_budget);
  if (lines_left_ > 0 || output_watch_ == 0) return;
  loop_.forget(output_timer_);
  pause_output();
}

WorkerProcess::Exit WorkerProcess::exit_of(const siginfo_t& info) const {
  return {kind_of_end(info, killed_), pid_, info.si_status, how_it_ended(info), last_words_};
}

// The kernel does not tell how a process ended that is no child, or a child whose status it has not kept.
WorkerProcess::Exit WorkerProcess::unknown_exit() const {
  const End end = killed_ ? End::KilledByBroker : asked_ ? End::Orderly : End::OtherCode;
  std::string how = killed_ ? "was killed" : "ended, and how is not known";
  if (!killed_ && !is_child_) how += ": another ivgpud has started it";
  return {end, pid_, 0, std::move(how), last_words_, false};
}

void WorkerProcess::on_exit() {
  siginfo_t info{};
  const bool told = is_child_ && waitid(P_PIDFD, static_cast<id_t>(process_.get()), &info, WEXITED | WNOHANG) == 0;
  if (told && info.si_pid == 0) return;  // still running
  reaped_ = true;
  for (EventLoop::Id* id :
       {&control_watch_, &output_watch_, &exit_watch_, &kill_timer_, &output_timer_, &control_timer_})
    loop_.forget(*id);
  lines_left_ = lines_per_second;
  read_output(output_budget);
  for (const std::string& line : lines_.finish()) log_line(line);
  const Exit exit = told ? exit_of(info) : unknown_exit();
  const auto gone = events_.gone;  // a copy: the callee may destroy this object
  gone(exit);
}

}  // namespace host::broker
