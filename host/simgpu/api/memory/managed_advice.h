// What a program has said about parts of managed memory: advice, and where it was prefetched to. Nothing follows from it
// here, since host and device share the pages; it is kept for those who ask.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "host/simgpu/engine.h"

namespace simgpu {

// The host comes after all devices.
struct HostLast {
  bool operator()(CUdevice a, CUdevice b) const { return static_cast<unsigned>(a) < static_cast<unsigned>(b); }
};

struct Advice {
  bool read_mostly = false;
  CUmemLocation preferred{CU_MEM_LOCATION_TYPE_INVALID, 0}, prefetched{CU_MEM_LOCATION_TYPE_INVALID, 0};
  std::set<CUdevice, HostLast> accessed_by;  // the host is CU_DEVICE_CPU
};

// Threads: any. Ranges are taken in whole pages.
class ManagedAdvice {
 public:
  void change(Address start, std::size_t size, const std::function<void(Advice&)>& change);
  void forget(Address start, std::size_t size);
  // That of each part of the range. Not empty.
  std::vector<Advice> of(Address start, std::size_t size) const;

 private:
  struct Part {
    Address end = 0;
    Advice advice;
  };
  using Parts = std::map<Address, Part>;

  // The mutex is held.
  void split(Address at);

  mutable std::mutex mutex_;
  Parts parts_;  // disjoint; nothing was said of what is in none
};

}  // namespace simgpu
