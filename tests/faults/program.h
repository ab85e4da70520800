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

class Program {
 public:
  Program(const Paths& paths, const std::string& region, const std::string& mode, int milliseconds);

  pid_t pid() const { return child_.pid(); }
  void expect_begun();
  // A Failure where it ends otherwise, or not in time.
  void expect_right();
  // CUDA_ERROR_DEVICE_UNAVAILABLE within a second after its host side was killed; or right at about the time at which that had
  // gone, or before. Returns how long it took, in nanoseconds.
  long long expect_lost(const End& host_side);
  // A Failure where another signal was first.
  void kill();

 private:
  Ending ending();
  std::string errors() const;  // what it said on its standard error output

  const std::string mode_;
  const std::chrono::milliseconds patience_;
  ivgpu::FdPair pipe_;
  ivgpu::Fd errors_;
  ivgpu::Child child_;
  Lines lines_;
};

}  // namespace faults
