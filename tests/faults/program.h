// Programs of the faults (program.cc) as the rounds see them: lines that are followed, and how they ended.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tests/faults/host.h"

namespace faults {

// Lines that arrive on a descriptor.
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}
  // The next line; nothing when the time is over or the other end has gone.
  std::optional<std::string> next(std::chrono::milliseconds patience);

  // Of a steady or stubborn program whose lines begin with `label`: waits until it has made results since this call. A Failure
  // if it says anything but that, or nothing for `patience`.
  void expect_progress(const std::string& label, std::chrono::milliseconds patience);

  // All lines that are there, for a Failure.
  std::string rest();

 private:
  int fd_;
  std::string text_;
};

// How a program says that it ended: "right", "ended" or "wrong".
struct Ending {
  bool right = false, ended = false;
  int error = 0;       // of "ended"
  long long at = 0;    // when
  long long took = 0;  // the call that returned the error
  std::string line;
};
Ending parse_ending(const std::string& line);

// A program that works for so long works until it is asked to end, or loses its host side.
constexpr int endless_ms = 3'600'000;

class Program {
 public:
  Program(const Paths& paths, const std::string& region, const std::string& mode, int milliseconds);

  pid_t pid() const { return child_.pid(); }
  void expect_begun();
  void expect_progress() { lines_.expect_progress("", patience_); }
  bool has_ended() { return child_.wait_for(std::chrono::milliseconds(0)).has_value(); }
  void ask_to_end() const { child_.signal(SIGTERM); }
  // A Failure where it ends otherwise, or not before the deadline.
  void expect_right();
  // CUDA_ERROR_DEVICE_UNAVAILABLE, or right if its work has an end. Returns how long after `killed`, when its host side was
  // killed, in nanoseconds.
  long long expect_lost(long long killed);
  // The same of a stubborn program: a call of it fails so, and so do all that follow.
  void expect_lost_for_good();
  // A Failure where another signal was first.
  void kill();

 private:
  std::string line();  // a Failure where none comes before the deadline
  Ending ending();
  std::string errors() const;  // what it said on its standard error output

  const std::string mode_;
  const bool has_an_end_;
  const std::chrono::milliseconds patience_;
  ivgpu::FdPair pipe_;
  ivgpu::Fd errors_;
  ivgpu::Child child_;
  Lines lines_;
};

}  // namespace faults
