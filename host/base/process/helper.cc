#include "host/base/process/helper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "host/base/hostile_text.h"
#include "host/base/process/child_setup.h"
#include "host/base/process/pidfd.h"

namespace host::broker {
namespace {

constexpr int first_free = STDERR_FILENO + 1;

std::string how_it_ended(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? fmt::format("exited with code {}", info.si_status)
                                    : fmt::format("was killed by signal {}", info.si_status);
}

bool make_pipe(Fd& reads, Fd& writes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  reads.reset(ends[0]);
  writes.reset(ends[1]);
  return true;
}

}  // namespace

Result<std::unique_ptr<Helper>> Helper::start(EventLoop& loop, const Command& command, Gone gone) {
  std::unique_ptr<Helper> helper(new Helper(loop, std::move(gone)));
  if (const auto spawned = helper->spawn(command); !spawned) return spawned.error();
  helper->watch_all();
  return helper;
}

std::unique_ptr<Helper> Helper::adopt(EventLoop& loop, Fd output, Fd process, Gone gone) {
  std::unique_ptr<Helper> helper(new Helper(loop, std::move(gone)));
  helper->output_ = std::move(output);
  helper->process_ = std::move(process);
  helper->watch_all();
  return helper;
}

void Helper::watch_all() {
  output_watch_ = loop_.watch(output_.get(), POLLIN, [this](short) { read_output(); });
  exit_watch_ = loop_.watch(process_.get(), POLLIN, [this](short) { on_exit(); });
}

Result<void> Helper::spawn(const Command& command) {
  const auto failure = [&](int why) {
    return Error{fmt::format("{}: {}", command.arguments.front(), std::strerror(why))};
  };
  Fd child_output, child_input, input;
  if (!make_pipe(output_, child_output) || !make_pipe(child_input, input)) return failure(errno);
  fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  fcntl(input.get(), F_SETFL, O_NONBLOCK);
  const std::string& text = command.input;
  if (!text.empty() && write(input.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return failure(errno);
  ChildSetup child(first_free + static_cast<int>(command.passed.size()));
  for (std::size_t i = 0; i < command.passed.size(); ++i)
    child.pass(command.passed[i], first_free + static_cast<int>(i));
  child.pass(child_input.get(), STDIN_FILENO);
  for (const int number : {STDOUT_FILENO, STDERR_FILENO}) child.pass(child_output.get(), number);
  if (const int why = child.start(pid_, command.arguments, command.environment); why != 0) return failure(why);
  // on_exit() reaps the child, so its process ID is still valid here.
  setpriority(PRIO_PROCESS, static_cast<id_t>(pid_), command.priority);
  process_ = open_process(pid_);
  if (!process_) return failure(errno);
  return {};
}

Helper::~Helper() {
  loop_.forget(output_watch_);
  loop_.forget(exit_watch_);
  if (reaped_) return;
  if (process_)
    signal(SIGKILL);
  else if (pid_ > 0)
    kill(pid_, SIGKILL);
  // Do not wait: a call into the GPU's kernel driver may never return.
  if (pid_ > 0) waitpid(pid_, nullptr, WNOHANG);
}

// Signals by pidfd: the process ID of a process that is no child may have been reused.
void Helper::signal(int number) const {
  if (!reaped_) send_signal(process_.get(), number);
}

void Helper::read_output() {
  std::array<char, 4096> bytes;
  const ssize_t length = read(output_.get(), bytes.data(), bytes.size());
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (length <= 0) return loop_.forget(output_watch_);
  kept_.append(bytes.data(), std::min(static_cast<std::size_t>(length), longest_output - kept_.size()));
}

void Helper::on_exit() {
  siginfo_t info{};
  const bool is_child = pid_ > 0;
  const bool answered = is_child && waitid(P_PIDFD, static_cast<id_t>(process_.get()), &info, WEXITED | WNOHANG) == 0;
  if (answered && info.si_pid == 0) return;  // still running
  reaped_ = true;
  // Read its last output. Do not wait for the end of the pipe, which the helper's own children may hold.
  read_output();
  loop_.forget(output_watch_);
  loop_.forget(exit_watch_);
  const std::string how = answered   ? how_it_ended(info)
                          : is_child ? "ended, and how is not known"  // ECHILD: the kernel has not kept the status
                                     : "has ended";
  const Exit exit{info.si_code == CLD_EXITED && info.si_status == 0, how, kept_};
  const auto gone = gone_;  // a copy: the callee may destroy this object
  gone(exit);
}

std::string first_words(const std::string& output) {
  constexpr std::size_t longest = 200;
  const std::string line = output.substr(0, std::min(output.find('\n'), longest));
  return line.empty() ? "" : ": " + escaped(line);
}

}  // namespace host::broker
