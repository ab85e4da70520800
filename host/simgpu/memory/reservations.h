// Addresses of the process that are reserved for mappings. Private to host/simgpu.
//
// A running kernel may still use memory that the program has unmapped or freed. Therefore addresses never return to the
// system: later reservations reuse them, and addresses that were mapped once stay accessible. Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "host/simgpu/engine.h"

namespace simgpu {

class Reservations {
 public:
  // `align` is a power of two and at least a page. An unusable `hint` is ignored; 0 means no hint. Returns 0 if no
  // space is left.
  Address reserve(std::size_t size, std::size_t align, Address hint);
  void release(Address start, std::size_t size);
  // Removes a mapping; the addresses stay reserved.
  static void unmap(Address start, std::size_t size);

 private:
  // The caller holds the mutex.
  Address take_spare(std::size_t size, std::size_t align);
  bool take_spare_at(Address start, std::size_t size);

  std::mutex mutex_;
  std::map<Address, std::size_t> spare_;  // adjacent ranges are merged
  Address next_ = 0x7e90'0000'0000;       // starts below device memory, at addresses that ThreadSanitizer permits
};

}  // namespace simgpu
