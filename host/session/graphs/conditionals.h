// The conditional handles that a session's driver has returned. Such a handle is a plain number, since kernels contain
// it. The driver may accept any number as a handle of its process, so the worker passes on no other numbers.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <set>

#include "ring/base/mutex.h"

namespace host {

class Conditionals {
 public:
  // The driver does not report the end of a handle, so the session keeps all handles, up to this number.
  static constexpr std::size_t most = 1 << 20;

  // Returns false if there are too many handles.
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
