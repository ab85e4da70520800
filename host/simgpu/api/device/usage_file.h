// The file by which processes with the simulated GPU share it: IVGPU_SIM_USAGE names it. In it each tells how much of the
// memory it has taken; a broker with the simulated GPU reads that where another asks NVIDIA's library
// (host/broker/gpu/gpu_usage.h). And they share its time (time_slices.h), where the file says how long a change takes. A GPU
// that the file calls lost has disappeared: work that is given to it fails, and processes that start do not find it. What
// NVIDIA's driver does then is not documented, and no GPU was made to disappear for it.
//
// It is for tests: whoever makes a test makes the file, of sizeof(UsageFile) zeros. Trust: every process that may open it
// can write all of it, so numbers from it protect nobody.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "host/simgpu/image/device_names.h"

namespace simgpu {

struct UsageEntry {
  std::atomic<std::uint32_t> process;  // 0: of nobody. It stays when the process has ended
  std::atomic<std::uint64_t> bytes[max_devices];
  std::atomic<std::uint32_t> off[max_devices];  // the broker's: its kernels do not begin
};
// Times are in nanoseconds of CLOCK_MONOTONIC.
struct DeviceTime {
  std::atomic<std::int64_t> change_us, slice_us;  // the test's; a change of 0: each process has the GPU for itself
  std::atomic<std::uint32_t> owner;               // the process that has it
  std::atomic<std::uint32_t> changes;             // how many there were
  std::atomic<std::int64_t> slice_end, free_at;   // the owner's slice ends; another process may have it
  std::atomic<std::int64_t> wanted_at;            // when somebody last waited for it
  std::atomic<std::uint32_t> lost;                // the test's: the GPU has disappeared
};
struct UsageFile {
  static constexpr std::size_t most = 256;
  UsageEntry entry[most];
  DeviceTime time[max_devices];
};

// Null where there is no such file. It stays mapped. "fd:7" in place of a path: a descriptor, which is closed.
inline UsageFile* map_usage_file(const char* path) {
  const int file = std::strncmp(path, "fd:", 3) == 0 ? std::atoi(path + 3) : open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat status {};
  void* at = MAP_FAILED;
  if (fstat(file, &status) == 0 && static_cast<std::size_t>(status.st_size) >= sizeof(UsageFile))
    at = mmap(nullptr, sizeof(UsageFile), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return at == MAP_FAILED ? nullptr : static_cast<UsageFile*>(at);
}

// The process's own entry, new or from before. Null: all are taken.
inline UsageEntry* entry_of(UsageFile& file, std::uint32_t process) {
  for (UsageEntry& entry : file.entry) {
    std::uint32_t seen = 0;
    if (entry.process.compare_exchange_strong(seen, process) || seen == process) return &entry;
  }
  return nullptr;
}

}  // namespace simgpu
