// What a program of loopback_load and its test share: a file that both map.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace load {

// The program's. Times are in nanoseconds of CLOCK_MONOTONIC.
struct Progress {
  std::atomic<std::uint64_t> done;        // pieces of work
  std::atomic<std::int64_t> last;         // when the newest was done
  std::atomic<std::int64_t> longest_gap;  // between two; the test may clear it
  std::atomic<std::uint32_t> spins;       // its kernel spins until another program has launched
};

inline std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

inline Progress* map(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* at = MAP_FAILED;
  if (file >= 0 && ftruncate(file, sizeof(Progress)) == 0)
    at = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  return at == MAP_FAILED ? nullptr : static_cast<Progress*>(at);
}

}  // namespace load
