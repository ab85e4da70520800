// The device resources (multiprocessors) that the driver has given to a session as CUdevResource structs.
//
// The driver trusts its private bytes in the struct. The structs therefore stay in the worker, and the guest gets ids
// (host/untrusted/marshal/resources.h). The structs exist as long as the session, since no call ends a resource. Each
// resource is an object of the session, which bounds their number.
//
// Thread-safety: any thread.
#pragma once

#include <cuda.h>

#include <cstring>
#include <set>

#include "ring/base/mutex.h"

namespace host {

class Resources {
 public:
  // Stores the resource and returns its address; equal resources have the same address.
  const CUdevResource* keep(const CUdevResource& resource) {
    ring::MutexLock lock(mutex_);
    return &*kept_.insert(resource).first;
  }

 private:
  struct ByBytes {
    bool operator()(const CUdevResource& a, const CUdevResource& b) const { return std::memcmp(&a, &b, sizeof a) < 0; }
  };
  ring::Mutex mutex_;
  std::set<CUdevResource, ByBytes> kept_ GUARDED_BY(mutex_);
};

}  // namespace host
