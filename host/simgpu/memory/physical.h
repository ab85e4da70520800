// Device memory without an address: what can be mapped, and mapped twice. For host/simgpu only.
//
// It is one file without a name, as large as all of it and with no page in it until one is touched. The file is made with
// the driver, since a worker's jail lets it make none later. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "host/simgpu/engine.h"

namespace simgpu {

class PhysicalMemory {
 public:
  explicit PhysicalMemory(std::size_t size);
  ~PhysicalMemory();
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;

  // False: the process may not have a file of the size (RLIMIT_FSIZE), so there is no memory.
  bool is_allowed() const { return allowed_; }

  // Where in the file; nothing when there is not enough. Its bytes are zero.
  std::optional<std::uint64_t> take(std::size_t size);
  void give_back(std::uint64_t offset, std::size_t size);
  // `at` lies in a reservation of the caller's.
  bool map(Address at, std::uint64_t offset, std::size_t size);

 private:
  int file_ = -1;
  bool allowed_ = false;
  std::mutex mutex_;
  std::map<std::uint64_t, std::size_t> holes_;
};

}  // namespace simgpu
