// Programs of the fault tests (program.cc) as the test sees them: their output lines, and how they ended.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tests/faults/host.h"

namespace faults {

// Reads lines from a descriptor.
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}
  // The next line; nullopt if none arrives within `patience`, or if the writer has closed the descriptor.
  std::optional<std::string> next(std::chrono::milliseconds patience);

  // For a steady or stubborn program whose lines begin with `label`: waits for results that are newer than this call.
  // Throws a Failure on any other line, and if no result arrives within `patience`.
  void expect_progress(const std::string& label, std::chrono::milliseconds patience);

  // All lines that have arrived, for the message of a Failure.
  std::string rest();

 private:
  int fd_;
  std::string text_;
};

// How a program ended, by its own report: "right", "ended" or "wrong".
struct Ending {
  bool right = false, ended = false;
  int error = 0;       // the CUresult of "ended"
  long long at = 0;    // when
  long long took = 0;  // duration of the call that returned the error
  std::string line;
};
Ending parse_ending(const std::string& line);

// For programs that work until the test ends them, or until they lose their worker.
constexpr int endless_ms = 3'600'000;

class Program {
 public:
  Program(const Paths& paths, const std::string& region, const std::string& mode, int milliseconds);

  pid_t pid() const { return child_.pid(); }
  void expect_begun();
  void expect_progress() { lines_.expect_progress("", patience_); }
  bool has_ended() { return child_.wait_for(std::chrono::milliseconds(0)).has_value(); }
  void ask_to_end() const { child_.signal(SIGTERM); }
  // Throws a Failure unless the program ends with right results before the deadline.
  void expect_right();
  // Expects CUDA_ERROR_DEVICE_UNAVAILABLE, or right results if the program finished in time. Returns the nanoseconds
  // since `killed`, the time of the kill.
  long long expect_lost(long long killed);
  // For a stubborn program: expects that one call fails with CUDA_ERROR_DEVICE_UNAVAILABLE, and that all later calls
  // fail, too.
  void expect_lost_for_good();
  // Kills the program. Throws a Failure if another signal ended it first.
  void kill();

 private:
  std::string line();  // throws a Failure if no line arrives before the deadline
  Ending ending();
  std::string errors() const;  // the text on the program's standard error

  const std::string mode_;
  const bool has_an_end_;
  const std::chrono::milliseconds patience_;
  ivgpu::FdPair pipe_;
  ivgpu::Fd errors_;
  ivgpu::Child child_;
  Lines lines_;
};

}  // namespace faults
