// The parts of the account that belong to objects of a session, by their ids: what an array, a memory object or a
// context's limit has taken of a GPU's memory.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "host/session/memory/device_memory.h"

namespace host {

class Charges {
 public:
  void keep(std::uint64_t id, Charge charge) {
    if (charge.bytes() == 0) return;
    const std::lock_guard lock(mutex_);
    kept_[id] = std::move(charge);
  }
  // Gives back what an id has taken, if it has.
  void drop(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    kept_.erase(id);
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, Charge> kept_;
};

}  // namespace host
