// The charges to the memory account, keyed by the id of their object. A charge is the GPU memory of an array, a memory
// object or a context's limit.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "host/session/memory/device_memory.h"
#include "ring/base/mutex.h"

namespace host {

class Charges {
 public:
  void keep(std::uint64_t id, Charge charge) {
    if (charge.bytes() == 0) return;
    const ring::MutexLock lock(mutex_);
    kept_[id] = std::move(charge);
  }
  // Gives back the charge of an id, if there is one.
  void drop(std::uint64_t id) {
    const ring::MutexLock lock(mutex_);
    kept_.erase(id);
  }

 private:
  ring::Mutex mutex_;
  std::map<std::uint64_t, Charge> kept_ GUARDED_BY(mutex_);
};

}  // namespace host
