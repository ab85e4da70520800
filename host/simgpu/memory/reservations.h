// Addresses of the process that are set aside for mappings. For host/simgpu only.
//
// A kernel that runs may still use what the program has unmapped or freed, so addresses are never given back to the
// system: a freed reservation is the room of later ones, and what was mapped once stays memory. Threads: any.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "host/simgpu/engine.h"

namespace simgpu {

class Reservations {
 public:
  // `align` is a power of two, at least a page. A hint of 0 is none; one that is taken is no error. 0 when there is no room.
  Address reserve(std::size_t size, std::size_t align, Address hint);
  void release(Address start, std::size_t size);
  // Takes a mapping away.
  static void unmap(Address start, std::size_t size);

 private:
  // The mutex is held.
  Address take_spare(std::size_t size, std::size_t align);
  bool take_spare_at(Address start, std::size_t size);

  std::mutex mutex_;
  std::map<Address, std::size_t> spare_;  // adjacent ones are one
  Address next_ = 0x7e90'0000'0000;       // below the devices' memory, and where ThreadSanitizer allows memory
};

}  // namespace simgpu
