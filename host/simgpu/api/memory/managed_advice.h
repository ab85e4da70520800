// Advice and prefetch locations for parts of managed memory. They have no effect here, since host and device share the
// pages; attribute queries return them.
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

// Sorts the host after all devices.
struct HostLast {
  bool operator()(CUdevice a, CUdevice b) const { return static_cast<unsigned>(a) < static_cast<unsigned>(b); }
};

struct Advice {
  bool read_mostly = false;
  CUmemLocation preferred{CU_MEM_LOCATION_TYPE_INVALID, 0}, prefetched{CU_MEM_LOCATION_TYPE_INVALID, 0};
  std::set<CUdevice, HostLast> accessed_by;  // the host is CU_DEVICE_CPU
};

// Thread-safe. Ranges extend to whole pages.
class ManagedAdvice {
 public:
  void change(Address start, std::size_t size, const std::function<void(Advice&)>& change);
  void forget(Address start, std::size_t size);
  // The advice of each part of the range; never empty.
  std::vector<Advice> of(Address start, std::size_t size) const;

 private:
  struct Part {
    Address end = 0;
    Advice advice;
  };
  using Parts = std::map<Address, Part>;

  // Requires the mutex.
  void split(Address at);

  mutable std::mutex mutex_;
  Parts parts_;  // disjoint; memory outside has no advice
};

}  // namespace simgpu
