// The pending links of a session: what the driver keeps addresses of while a link lasts, and the images that have come
// out.
//
// Thread-safety: any thread may call Links. A Link's members are used under its `mutex`, which is also held while the
// driver works on the link: so its buffers are read when nobody writes to them, and a link that has ended on one channel
// is not passed to the driver on another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "host/session/lent_options.h"
#include "host/session/memory/budget.h"

namespace host {

struct Link {
  Link(std::vector<CUjit_option> names, const std::vector<std::uint64_t>& values) : options(std::move(names), values) {}

  std::mutex mutex;
  LentOptions options;
  Share share;                   // of the session's image budget: log buffers, inputs, and the image twice
  std::vector<std::byte> image;  // a copy, since the driver's goes with the link
  bool ended = false;
};

class Links {
 public:
  // False: the id has a link already.
  bool add(std::uint64_t id, std::shared_ptr<Link> link) {
    std::lock_guard lock(mutex_);
    return links_.try_emplace(id, std::move(link)).second;
  }
  // Null: there is none.
  std::shared_ptr<Link> find(std::uint64_t id) {
    std::lock_guard lock(mutex_);
    const auto found = links_.find(id);
    return found == links_.end() ? nullptr : found->second;
  }
  // Drops an id's link, if it has one.
  void drop(std::uint64_t id) {
    std::shared_ptr<Link> dropped;  // destroyed without the lock
    std::lock_guard lock(mutex_);
    if (const auto found = links_.find(id); found != links_.end()) {
      dropped = std::move(found->second);
      links_.erase(found);
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Link>> links_;
};

}  // namespace host
