// The pending links of a session: the memory whose addresses the driver keeps during a link, and the resulting images.
//
// Thread-safety: any thread may call Links. A Link's members are used under its `mutex`, which is also held while the
// driver works on the link. Its buffers are therefore not read during a write, and a link that one channel has ended is
// never passed to the driver by another.
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
  Share share GUARDED_BY(mutex);  // of the session's image budget: log buffers, inputs, and the image twice
  std::vector<std::byte> image GUARDED_BY(mutex);  // a copy, since the driver's goes with the link
  bool ended GUARDED_BY(mutex) = false;
};

class Links {
 public:
  // False if the id already has a link.
  bool add(std::uint64_t id, std::shared_ptr<Link> link) {
    ring::MutexLock lock(mutex_);
    return links_.try_emplace(id, std::move(link)).second;
  }
  // Null if there is none.
  std::shared_ptr<Link> find(std::uint64_t id) {
    ring::MutexLock lock(mutex_);
    const auto found = links_.find(id);
    return found == links_.end() ? nullptr : found->second;
  }
  // Drops an id's link, if it has one.
  void drop(std::uint64_t id) {
    std::shared_ptr<Link> dropped;  // destroyed without the lock
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
