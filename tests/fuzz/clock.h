// A monotonic clock that only a script advances, so that minutes of waiting pass at once. libFuzzer itself uses the
// realtime clock, which is unaffected.
//
// Include this file in only one file of a program, since it replaces libc's clock_gettime().
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace fuzz {
inline std::uint64_t clock_ns = 0;
inline std::uint64_t clock_step_ns = 0;  // added at each reading, for code that polls until a certain time
}  // namespace fuzz

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE)
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  fuzz::clock_ns += fuzz::clock_step_ns;
  time->tv_sec = static_cast<time_t>(fuzz::clock_ns / 1'000'000'000);
  time->tv_nsec = static_cast<long>(fuzz::clock_ns % 1'000'000'000);
  return 0;
}
