// The progress file, which loopback_load and its test map.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace load {

// The program writes these fields.
struct Progress {
  std::atomic<std::uint64_t> done;   // bursts of work
  std::atomic<std::uint32_t> spins;  // number of kernels that spin until another program has launched
};

inline Progress* map(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* at = MAP_FAILED;
  if (file >= 0 && ftruncate(file, sizeof(Progress)) == 0)
    at = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  return at == MAP_FAILED ? nullptr : static_cast<Progress*>(at);
}

}  // namespace load
