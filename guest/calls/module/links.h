// What the guest keeps of a pending link: the program's buffers for its report, and the images that have come out. Only
// link.cc uses this.
//
// A driver keeps pointers to a link's option values and log buffers until the link is destroyed, and writes to them in
// any of its calls. The worker's driver has the worker's buffers, so each reply brings what they have become, and it is
// copied to the program's.
//
// Thread-safety: any thread. A link lives as long as a call uses it, even if another thread destroys it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "guest/calls/module/jit_options.h"

namespace guest {

class Link {
 public:
  explicit Link(const JitOptions& options)
      : names_(options.names, options.names + options.count),
        asked_(options.values, options.values + options.count),
        values_(options.values) {}

  // Takes what a reply brings for the program's buffers.
  void take_report(ring::SharedReader& reply) {
    std::lock_guard lock(mutex_);
    take({static_cast<unsigned>(names_.size()), names_.data(), values_}, asked_.data(), reply);
  }
  // Keeps an image until the link's end. Returns where it is: the same place for the same bytes.
  const std::vector<char>& keep(std::vector<char> image);

 private:
  std::mutex mutex_;
  std::vector<CUjit_option> names_;
  std::vector<void*> asked_;  // the values as the program gave them; log sizes are overwritten
  void** values_;             // the program's
  std::deque<std::vector<char>> images_;
};

void add_link(std::uint64_t id, std::shared_ptr<Link> link);
// Null: there is none.
std::shared_ptr<Link> find_link(std::uint64_t id);
void drop_link(std::uint64_t id);

}  // namespace guest
