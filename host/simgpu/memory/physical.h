// Device memory without addresses, which can be mapped several times. Private to host/simgpu.
//
// The memory is one sparse anonymous file of the full size. The driver creates the file at start, since a worker's jail
// forbids creating files later. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "host/simgpu/engine.h"
#include "ring/base/mutex.h"

namespace simgpu {

class PhysicalMemory {
 public:
  explicit PhysicalMemory(std::size_t size);
  ~PhysicalMemory();
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;

  // Returns false if RLIMIT_FSIZE forbids a file of this size. In that case there is no memory.
  bool is_allowed() const { return allowed_; }

  // Returns an offset in the file, or nullopt if too little memory is left. The bytes at the offset are zero.
  std::optional<std::uint64_t> take(std::size_t size);
  void give_back(std::uint64_t offset, std::size_t size);
  // `at` must lie in a reservation of the caller.
  bool map(Address at, std::uint64_t offset, std::size_t size);

 private:
  int file_ = -1;
  bool allowed_ = false;
  ring::Mutex mutex_;
  std::map<std::uint64_t, std::size_t> holes_ GUARDED_BY(mutex_);
};

}  // namespace simgpu
