// Owns the ways by which another process asks the broker to end or to reload: its signals, read from a signalfd, and a
// pipe that the process which started the broker holds open. Only the thread of the event loop uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/result.h"

namespace host::broker {

class SignalWatch {
 public:
  explicit SignalWatch(EventLoop& loop) : loop_(loop) {}
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // Blocks these signals in the calling thread, and calls `received` for each from now on. The error is one sentence.
  Result<void> watch(std::initializer_list<int> numbers, std::function<void(int number)> received);
  // Calls `closed` once, when all holders of the other end of `fd` have closed it. The caller owns `fd`.
  void watch_pipe(int fd, std::function<void()> closed);

 private:
  void read_signal();
  void read_pipe(int fd);

  EventLoop& loop_;
  Fd signals_;
  EventLoop::Id signal_watch_ = 0, pipe_watch_ = 0;
  std::function<void(int)> received_;
  std::function<void()> closed_;
};

}  // namespace host::broker
