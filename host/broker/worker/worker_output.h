// The pipe of one worker's standard output and error: its lines go into the broker's log.
//
// WorkerProcess owns it. Thread: the broker's loop.
//
// Trust: a guest may control the worker and make it write without end. The text is escaped and cut into bounded lines.
#pragma once

#include <cstddef>
#include <string>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/hostile_text.h"
#include "host/base/log_limiter.h"
#include "host/base/rate.h"

namespace host::broker {

// Log quota shared by a VM's workers: a guest can make workers write and die without end.
struct WorkerLog {
  static constexpr int lines_per_second = 50, burst = 100;
  TokenBucket lines{lines_per_second, burst, Clock::now()};
  LogLimiter kills;
};

class WorkerOutput {
 public:
  // `label` begins each line; `log` outlives this object.
  WorkerOutput(EventLoop& loop, Fd pipe, std::string label, WorkerLog& log);
  ~WorkerOutput();
  WorkerOutput(const WorkerOutput&) = delete;
  WorkerOutput& operator=(const WorkerOutput&) = delete;

  void watch();
  // The worker has ended: logs the rest, and reads no more.
  void finish();
  const std::string& last_words() const { return last_words_; }
  int fd() const { return pipe_.get(); }

 private:
  void stop_reading();
  void on_readable();
  void read_lines(std::size_t budget);
  void log_line(const std::string& line);
  void pause();

  EventLoop& loop_;
  const Fd pipe_;
  const std::string label_;
  WorkerLog& log_;
  EventLoop::Id watch_ = 0, timer_ = 0;
  LineCutter lines_;
  std::string last_words_;
  int lines_left_, lines_left_out_ = 0;
};

}  // namespace host::broker
