// The conditional handles that a session's driver has returned: plain numbers, since kernels hold them. The driver may
// accept any number as a handle of its process, so the worker passes on no others.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <set>

#include "ring/base/mutex.h"

namespace host {

class Conditionals {
 public:
  // The driver does not report the end of a handle, so the session keeps all of them, up to this number.
  static constexpr std::size_t most = 1 << 20;

  // False if there are too many.
  bool add(std::uint64_t handle) {
    const ring::MutexLock lock(mutex_);
    return handles_.size() < most && (handles_.insert(handle), true);
  }
  bool has(std::uint64_t handle) const {
    const ring::MutexLock lock(mutex_);
    return handles_.contains(handle);
  }

 private:
  mutable ring::Mutex mutex_;
  std::set<std::uint64_t> handles_ GUARDED_BY(mutex_);
};

}  // namespace host
