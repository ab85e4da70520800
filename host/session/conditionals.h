// The conditional handles that a session's driver has given: numbers, since kernels hold them. The driver may take any number for a
// handle of its own process, so that no other is passed on.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

namespace host {

class Conditionals {
 public:
  // The driver does not tell when it ends a handle, so all that it ever gave are kept, up to this number.
  static constexpr std::size_t most = 1 << 20;

  // False: there are too many.
  bool add(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    return handles_.size() < most && (handles_.insert(handle), true);
  }
  bool has(std::uint64_t handle) const {
    const std::lock_guard lock(mutex_);
    return handles_.contains(handle);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::uint64_t> handles_;
};

}  // namespace host
