// Advice and prefetch locations for parts of managed memory. Host and device share the pages, so advice has no effect
// in the simulation; attribute queries return it.
#pragma once

#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "host/simgpu/engine.h"

namespace simgpu {

// Orders device numbers so that the host, CU_DEVICE_CPU, comes after all devices.
struct HostLast {
  bool operator()(CUdevice a, CUdevice b) const { return static_cast<unsigned>(a) < static_cast<unsigned>(b); }
};

struct Advice {
  bool read_mostly = false;
  CUmemLocation preferred{CU_MEM_LOCATION_TYPE_INVALID, 0}, prefetched{CU_MEM_LOCATION_TYPE_INVALID, 0};
  std::set<CUdevice, HostLast> accessed_by;  // contains CU_DEVICE_CPU for the host
};

// The advice for all managed memory. Ranges are extended to whole pages. Thread-safe.
class ManagedAdvice {
 public:
  void change(Address start, std::size_t size, const std::function<void(Advice&)>& change);
  void forget(Address start, std::size_t size);
  // Returns the advice for each part of the range; the result is never empty.
  std::vector<Advice> of(Address start, std::size_t size) const;

 private:
  struct Part {
    Address end = 0;
    Advice advice;
  };
  using Parts = std::map<Address, Part>;

  void split(Address at) REQUIRES(mutex_);

  mutable ring::Mutex mutex_;
  Parts parts_ GUARDED_BY(mutex_);  // disjoint ranges; memory outside them has no advice
};

}  // namespace simgpu
