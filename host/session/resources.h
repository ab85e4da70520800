// The resources of devices that the driver has given to a session: multiprocessors, as a CUdevResource tells of them.
//
// The driver believes the bytes of its own that such a struct has. So they stay here, and the guest has an id in their
// place (host/untrusted/marshal/resources.h). What is kept lasts as long as the session, since no call ends a resource; each is an
// object of the session, which bounds their number.
//
// Thread-safety: any thread.
#pragma once

#include <cuda.h>

#include <cstring>
#include <mutex>
#include <set>

namespace host {

class Resources {
 public:
  // Its place. Equal ones have the same.
  const CUdevResource* keep(const CUdevResource& resource) {
    std::lock_guard lock(mutex_);
    return &*kept_.insert(resource).first;
  }

 private:
  struct ByBytes {
    bool operator()(const CUdevResource& a, const CUdevResource& b) const { return std::memcmp(&a, &b, sizeof a) < 0; }
  };
  std::mutex mutex_;
  std::set<CUdevResource, ByBytes> kept_;
};

}  // namespace host
