#include "host/base/process/signal_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace host::broker {

SignalWatch::~SignalWatch() {
  loop_.forget(signal_watch_);
  loop_.forget(pipe_watch_);
}

Result<void> SignalWatch::watch(std::initializer_list<int> numbers, std::function<void(int)> received) {
  sigset_t ours;
  sigemptyset(&ours);
  for (const int number : numbers) sigaddset(&ours, number);
  sigprocmask(SIG_BLOCK, &ours, nullptr);
  signals_.reset(signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return Error{fmt::format("signalfd: {}", std::strerror(errno))};
  received_ = std::move(received);
  signal_watch_ = loop_.watch(signals_.get(), POLLIN, [this](short) { read_signal(); });
  return {};
}

void SignalWatch::read_signal() {
  signalfd_siginfo info;
  if (read(signals_.get(), &info, sizeof info) == sizeof info) received_(static_cast<int>(info.ssi_signo));
}

void SignalWatch::watch_pipe(int fd, std::function<void()> closed) {
  closed_ = std::move(closed);
  pipe_watch_ = loop_.watch(fd, POLLIN, [this, fd](short) { read_pipe(fd); });
}

void SignalWatch::read_pipe(int fd) {
  char bytes[64];
  const ssize_t length = read(fd, bytes, sizeof bytes);
  if (length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR))) return;
  loop_.forget(pipe_watch_);
  closed_();
}

}  // namespace host::broker
