// The pending links of a session: the memory whose addresses the driver keeps during a link, and the resulting images.
//
// Thread-safety: any thread may call Links. A Link's members are used under the link's `mutex`, which is also held
// while the driver works on the link. The buffers are therefore not read during a write. If one channel has ended a
// link, no other channel passes the link to the driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "host/session/driver_jit_options.h"
#include "host/session/memory/budget.h"
#include "ring/base/mutex.h"

namespace host {

struct Link {
  Link(std::vector<CUjit_option> names, const std::vector<std::uint64_t>& values) : options(std::move(names), values) {}

  ring::Mutex mutex;
  DriverJitOptions options GUARDED_BY(mutex);
  // The link's share of the session's image budget: log buffers, inputs, and twice the image.
  Share share GUARDED_BY(mutex);
  std::vector<std::byte> image GUARDED_BY(mutex);  // a copy, since the driver's image ends with the link
  bool ended GUARDED_BY(mutex) = false;
};

class Links {
 public:
  // Returns false if the id already has a link.
  bool add(std::uint64_t id, std::shared_ptr<Link> link) {
    ring::MutexLock lock(mutex_);
    return links_.try_emplace(id, std::move(link)).second;
  }
  // Returns the link of the id, or null.
  std::shared_ptr<Link> find(std::uint64_t id) {
    ring::MutexLock lock(mutex_);
    const auto found = links_.find(id);
    return found == links_.end() ? nullptr : found->second;
  }
  // Drops the link of an id, if there is one.
  void drop(std::uint64_t id) {
    std::shared_ptr<Link> dropped;  // destroyed after the lock is released
    ring::MutexLock lock(mutex_);
    if (const auto found = links_.find(id); found != links_.end()) {
      dropped = std::move(found->second);
      links_.erase(found);
    }
  }

 private:
  ring::Mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Link>> links_ GUARDED_BY(mutex_);
};

}  // namespace host
