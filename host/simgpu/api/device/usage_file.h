// The file through which processes share a simulated GPU; IVGPU_SIM_USAGE names it. Each process writes the memory that
// it uses, and the broker reads that as it reads NVIDIA's library elsewhere (host/broker/gpu/gpu_usage.h). It also
// holds the state of time slicing (time_slices.h). If the file marks the GPU lost, work fails and new processes do not
// find the GPU. NVIDIA documents no behaviour for that case.
//
// For tests: the test creates the file as sizeof(UsageFile) zeros. Trust: each process that opens the file can write
// all of it, so nothing may rely on its numbers for protection.
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
  std::atomic<std::uint32_t> process;  // 0: free entry. Stays set after the process ends
  std::atomic<std::uint64_t> bytes[max_devices];
  std::atomic<std::uint32_t> off[max_devices];  // set by the broker: no kernel of the process begins
};
// Times are in nanoseconds of CLOCK_MONOTONIC.
struct DeviceTime {
  std::atomic<std::int64_t> change_us, slice_us;  // set by the test; change_us 0: no time slicing
  std::atomic<std::uint32_t> owner;               // the process that owns the GPU
  std::atomic<std::uint32_t> changes;             // number of switches
  std::atomic<std::int64_t> slice_end, free_at;   // end of the owner's slice; when another process may take over
  std::atomic<std::int64_t> wanted_at;            // when a process last waited for the GPU
  std::atomic<std::uint32_t> lost;                // set by the test: the GPU is gone
};
struct UsageFile {
  static constexpr std::size_t most = 256;
  UsageEntry entry[most];
  DeviceTime time[max_devices];
};

// Maps the file for good; null if it does not exist. "fd:7" names a descriptor, which is closed.
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

// The process's entry, existing or new; null if all entries are in use.
inline UsageEntry* entry_of(UsageFile& file, std::uint32_t process) {
  for (UsageEntry& entry : file.entry) {
    std::uint32_t seen = 0;
    if (entry.process.compare_exchange_strong(seen, process) || seen == process) return &entry;
  }
  return nullptr;
}

}  // namespace simgpu
