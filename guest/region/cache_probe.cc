#include "guest/region/cache_probe.h"

#include <algorithm>
#include <ctime>

#include "ring/layout/layout.h"

namespace guest {

std::uint64_t monotonic_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

double nanoseconds_per_line(const std::byte* at, std::size_t bytes, Nanoseconds clock) {
  constexpr int passes = 8;
  const std::size_t lines = bytes / ring::line;
  double best = 1e9;
  std::size_t next = 0;
  for (int pass = 0; pass < passes; ++pass) {
    const std::uint64_t start = clock();
    for (std::size_t i = 0; i < lines; ++i) {
      // The next address depends on the value of this load, so that loads cannot overlap. The added value is 0.
      const auto value = *reinterpret_cast<const volatile std::uint8_t*>(at + next * ring::line);
      next = (next + 1 + (static_cast<std::size_t>(value) >> 8)) % lines;
    }
    best = std::min(best, static_cast<double>(clock() - start) / static_cast<double>(lines));
  }
  return best;
}

}  // namespace guest
