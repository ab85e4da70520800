// The file through which processes share a simulated GPU; IVGPU_SIM_USAGE names the file. Each process writes its
// memory use into the file. The broker reads it there instead of from NVML (host/broker/gpu/gpu_usage.h). The file also
// holds the state of time slicing (time_slices.h). If the file marks the GPU as lost, work fails and new processes do
// not find the GPU. NVIDIA documents no behaviour for that case.
//
// The file serves tests only: the test creates it as sizeof(UsageFile) zero bytes. Each process that opens the file can
// write all of it, so no protection may rely on its numbers.
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
  std::atomic<std::uint32_t> process;  // process id; 0: the entry is free. The id remains after the process ends
  std::atomic<std::uint64_t> bytes[max_devices];
  std::atomic<std::uint32_t> off[max_devices];  // set by the broker: while not 0, no kernel of the process begins
};
// All times are in nanoseconds of CLOCK_MONOTONIC, except the two durations in microseconds.
struct DeviceTime {
  // context switch and slice, set by the test; change_us 0: no time slicing
  std::atomic<std::int64_t> change_us, slice_us;
  std::atomic<std::uint32_t> owner;    // id of the process that has the GPU
  std::atomic<std::uint32_t> changes;  // number of context switches
  // end of the owner's slice; time from which another process may take the GPU
  std::atomic<std::int64_t> slice_end, free_at;
  std::atomic<std::int64_t> wanted_at;  // time when a process last waited for the GPU
  std::atomic<std::uint32_t> lost;      // set by the test: the GPU is lost
};
struct UsageFile {
  static constexpr std::size_t most = 256;
  UsageEntry entry[most];
  DeviceTime time[max_devices];
};

// Maps the file and never unmaps it; returns null if the file does not exist. A path "fd:7" stands for descriptor 7,
// which this function closes.
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

// Returns the existing or a new entry of the process; null if all entries are in use.
inline UsageEntry* entry_of(UsageFile& file, std::uint32_t process) {
  for (UsageEntry& entry : file.entry) {
    std::uint32_t seen = 0;
    if (entry.process.compare_exchange_strong(seen, process) || seen == process) return &entry;
  }
  return nullptr;
}

}  // namespace simgpu
