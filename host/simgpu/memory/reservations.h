// Addresses of the process that are reserved for mappings. Private to host/simgpu.
//
// A running kernel may still use memory that the program has unmapped or freed. Therefore addresses never return to the
// system: later reservations reuse them, and addresses that were mapped once stay accessible. Thread-safe.
#pragma once

#include <cstddef>
#include <map>

#include "host/simgpu/engine.h"
#include "ring/base/mutex.h"

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
  Address take_spare(std::size_t size, std::size_t align) REQUIRES(mutex_);
  bool take_spare_at(Address start, std::size_t size) REQUIRES(mutex_);

  ring::Mutex mutex_;
  std::map<Address, std::size_t> spare_ GUARDED_BY(mutex_);  // adjacent ranges are merged
  // Starts below device memory, at addresses that ThreadSanitizer permits.
  Address next_ GUARDED_BY(mutex_) = 0x7e90'0000'0000;
};

}  // namespace simgpu
