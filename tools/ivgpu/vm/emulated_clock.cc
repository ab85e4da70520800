#include "tools/ivgpu/vm/emulated_clock.h"

#include <time.h>
#include <x86intrin.h>

#include <chrono>
#include <thread>

namespace ivgpu {
namespace {

// The TSC and the clock, read at the same time.
struct Reading {
  std::uint64_t tsc = 0, ns = 0;
};

// CLOCK_MONOTONIC_RAW, since NTP does not adjust it.
std::uint64_t raw_nanoseconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

// The fastest of 100 readings: no interrupt separated its two reads.
Reading read_both() {
  Reading best;
  std::uint64_t shortest = ~0ULL;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t before = __rdtsc(), ns = raw_nanoseconds(), took = __rdtsc() - before;
    if (took < shortest) shortest = took, best = {before + took / 2, ns};
  }
  return best;
}

}  // namespace

std::uint64_t tsc_khz() {
  const Reading first = read_both();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Reading last = read_both();
  return (last.tsc - first.tsc) * 1'000'000 / (last.ns - first.ns);
}

std::string emulated_clock() { return "tsc=reliable no_timer_check tsc_early_khz=" + std::to_string(tsc_khz()); }

}  // namespace ivgpu
