// A monotonic clock that stands still until a script moves it: minutes of patience pass in no time. libFuzzer itself
// measures by the calendar's clock, which goes on.
//
// For one file of a program: it defines clock_gettime() in place of libc's.
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace fuzz {
inline std::uint64_t clock_ns = 0;
inline std::uint64_t clock_step_ns =
    0;  // passes with each look at the clock: for code that looks until time has passed
}  // namespace fuzz

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE)
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  fuzz::clock_ns += fuzz::clock_step_ns;
  time->tv_sec = static_cast<time_t>(fuzz::clock_ns / 1'000'000'000);
  time->tv_nsec = static_cast<long>(fuzz::clock_ns % 1'000'000'000);
  return 0;
}
